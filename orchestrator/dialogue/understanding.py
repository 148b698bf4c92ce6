"""The rules of the understanding cascade that need no model: phrases, typed answers, flow starts, free answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from orchestrator.dialogue import offers
from orchestrator.dialogue.decision import Decision
from orchestrator.dialogue.example_patterns import only_moment, split_moment
from orchestrator.dialogue.late_corrections import late_correction
from orchestrator.dialogue.phrases import (
    Correction,
    beyond_name,
    find_flow,
    find_slot,
    match_correction,
    match_phrase,
    names_any_task,
    shares_word,
    what_to_stop,
)
from orchestrator.dialogue.rails_port import ExampleMatcher
from orchestrator.dialogue.replacement import (
    bare_value,
    free_text,
    is_name_like,
    is_same_text,
    names_choice,
    replacements,
)
from orchestrator.dialogue.self_corrections import corrected_text
from orchestrator.flows.model import CollectStep, FlowConfig, Slot
from orchestrator.flows.slot_values import coerce
from orchestrator.tasks.commands import Command
from orchestrator.tasks.extraction.amend import amended, moment_answer
from orchestrator.tasks.extraction.extract import Extraction, extract
from orchestrator.tasks.extraction.words import is_hesitation, is_question
from orchestrator.tasks.processor import correctable, current_step
from orchestrator.tasks.state import State

_MAKE_IT = re.compile(
    r"^(?:make (?:it|that)|let'?s (?:say|make it)|i meant?|改成|换成|改为|应该是|是)\s*", re.IGNORECASE
)
_SLOT_IS = re.compile(
    r"(?:the |my )?(?P<about>[a-z][a-z ]{1,30}?) (?:is|should be|must be) (?=\S)"
    r"|(?P<about_zh>[\u3400-\u9fff]{1,12}?)(?:应该)?(?:是|为|改成|改为|换成)(?=\S)",
    re.IGNORECASE,
)
_REFUSES = re.compile(r"(?:no|nope|不是?|不不)[,，.。]\s*(?P<value>\S.{0,80})$", re.IGNORECASE)
_YES_NO = Slot(id="answer", type="boolean")


def open_question(state: State, config: FlowConfig) -> CollectStep | None:
    """Return the collect step whose question is open, or None."""
    step = current_step(state, config)
    if state.active is not None and state.active.open and isinstance(step, CollectStep):
        return step
    return None


def flow_names(config: FlowConfig, ids: tuple[str, ...] | None = None) -> list[tuple[str, tuple[str, ...]]]:
    """Return flows with what they may be called."""
    flows = config.user_flows()
    return [(i, flows[i].name.all_raw()) for i in (ids if ids is not None else tuple(flows)) if i in flows]


class Understander:
    """Understands one text in one state. Has no memory of its own."""

    def __init__(
        self, config: FlowConfig, state: State, now: datetime, language: str | None, *, cut_in: bool = False
    ) -> None:
        """`cut_in`: the words were said over an answer."""
        self.config = config
        self.state = state
        self.now = now
        self.language = language
        self.cut_in = cut_in

    def with_state(self, state: State) -> Understander:
        """Return one that looks at another state."""
        return Understander(self.config, state, self.now, self.language, cut_in=self.cut_in)

    # --- questions of the engine, phrases -----------------------------------------------------------------

    def rules(self, text: str) -> Decision | None:
        """Answers to the engine's own questions, then cancel, resume, skip, repeat and correction phrases."""
        late = self.late(text)
        if late is not None:
            return late
        pending = self.state.pending
        if pending is not None:
            decision = self._pending(pending, text)
            if decision is not None:
                return decision
        question = open_question(self.state, self.config)
        asks_yes_no = question is not None and self.config.slots[question.slot].type == "boolean"
        replaced = self.replaced(text)
        if replaced is not None:
            return replaced
        phrase = match_phrase(text, asks_yes_no=asks_yes_no or pending is not None)
        # "huh" in "uh huh" and 「不对」 to a yes/no question are answers, not rules
        answers = self.typed(text) if question is not None else None
        if phrase is not None and phrase.kind == "cancel_named" and self._starts_what_runs(text):
            return Decision(commands=(Command(name="start_flow", flow=state_root(self.state)),))
        if phrase is not None and (answers is None or self._phrase_wins(phrase.kind, question, text)):
            decision = self._phrase(phrase.kind, phrase.what, phrase.is_soft, question)
            if decision is not None:
                return decision
        correction = match_correction(text)
        if correction is not None and answers is not None and not correction.about and not correction.value:
            return None
        if correction is not None:
            return self._correct(correction, question, text)
        if answers is not None and asks_yes_no and question is not None:
            return self._refused_with_value(text, question)
        return self._refused(text, question) if answers is None else None

    def _starts_what_runs(self, text: str) -> bool:
        """Whether a text is what starts the running task itself: "cancel the reminder" to a task that cancels one."""
        flow = self.config.flow(state_root(self.state) or "")
        return flow is not None and any(is_same_text(text, example) for example in flow.examples)

    def late(self, text: str) -> Decision | None:
        """Take a correction of a task that has just ended, or that asks nothing just now."""
        state = self.state
        task = state.active or correctable(state, self.now)
        kind = (state.pending or {}).get("kind")
        if (
            task is None
            or task.is_undone
            or kind not in (None, "resume", "confirm_action", "undo")
            or open_question(state, self.config) is not None
        ):
            return None
        return late_correction(self, task, text)

    def filled(self) -> list[Slot]:
        """Return the slots of the running task that the user has filled, the newest first."""
        task = self.state.active
        if task is None:
            return []
        values = {**self.state.slots, **task.slots}
        mine = self.config.slots_of(task.root)
        filled = [s for s in values if s in mine and self.config.slots[s].filled_by == "user"]
        return [self.config.slots[s] for s in sorted(filled, key=lambda s: values[s].turn, reverse=True)]

    def replaced(self, text: str) -> Decision | None:
        """Take "not Paris, Rome" for the slot whose value is Paris."""
        filled = [s for s in self.filled() if s.type != "boolean"]
        for found in replacements(text) if filled else ():
            for slot in filled:
                now = self.state.values().get(slot.id)
                if slot.is_free_text:
                    is_new = is_name_like(found.new) and not is_same_text(str(now), found.new)
                    if is_new and is_same_text(str(now), found.old):
                        return _corrected(slot, free_text(found.new))
                    continue
                value = self.typed_value(slot, found.new)
                if value is not None and value != now and self.typed_value(slot, found.old) == now:
                    return _corrected(slot, value)
        return None

    def _refused_with_value(self, text: str, question: CollectStep) -> Decision | None:
        """Take "no, Rome" to a yes/no question for a correction where one filled slot alone can take the value."""
        match = _REFUSES.match(text.strip())
        if match is None:
            return None
        said = match["value"]
        named = self._with_named_slot(Correction(about="", value=said))
        if named.about:
            return self._correct(named, question, text)
        values = self.state.values()
        filled = [s for s in self.filled() if s.id != question.slot and s.type != "boolean"]
        typed = [(s, self.typed_value(s, said)) for s in filled if not s.is_free_text]
        fits = [(s, v) for s, v in typed if v is not None and v != values.get(s.id) and self.validates(s, v)]
        if any(v is not None for _, v in typed):
            return _corrected(*fits[0]) if len(fits) == 1 else None
        free = [s for s in filled if s.is_free_text]
        if len(free) != 1 or not is_name_like(said):
            return None
        value = free_text(bare_value(said))
        if not value or is_same_text(value, str(values.get(free[0].id))) or not self.validates(free[0], value):
            return None
        return _corrected(free[0], value)

    def validates(self, slot: Slot, value: Any) -> bool:
        """Whether the running flow's own check of the slot, if it looks at slots alone, takes the value."""
        task = self.state.active
        flow = self.config.flow(task.root) if task is not None else None
        if flow is None:
            return True
        names = {"slots": {**self.state.values(), slot.id: value}}
        steps = [s for s in flow.steps.values() if isinstance(s, CollectStep) and s.slot == slot.id]
        checks = [s.condition for s in steps if s.condition is not None]
        return all(c.holds(names) for c in checks if all(r.namespace == "slots" for r in c.reads))

    def _refused(self, text: str, question: CollectStep | None) -> Decision | None:
        """Take a no with a value (no, six) for the slot filled last, free texts left out, or for one that is named."""
        match = _REFUSES.match(text.strip())
        task = self.state.active
        if match is None or task is None:
            return None
        correction = self._with_named_slot(Correction(about="", value=match["value"]))
        if correction.about:
            return self._correct(correction, question, text)
        values = {**self.state.slots, **task.slots}
        mine = self.config.slots_of(task.root)
        typed = [s for s in values if s in mine and self.config.slots[s].filled_by == "user"]
        for slot_id in sorted(typed, key=lambda s: values[s].turn, reverse=True):
            value = self.typed_value(self.config.slots[slot_id], match["value"])
            if value is not None and self.config.slots[slot_id].type != "boolean":
                return Decision(commands=(Command(name="correct_slots", slots={slot_id: value}),))
        return None

    def _phrase_wins(self, kind: str, question: CollectStep | None, text: str) -> bool:
        """Whether a whole phrase counts although the question takes it: the "one" in "one more time" is no number.

        "Cancel" is an answer only where the question offers it as a choice.
        """
        slot = self.config.slots[question.slot] if question is not None else None
        if kind.startswith("cancel"):
            return slot is None or slot.type != "choice" or not names_choice(slot, text)
        return slot is not None and slot.pattern is None and slot.type not in ("boolean", "choice")

    def _pending(self, pending: Mapping[str, Any], text: str) -> Decision | None:
        kind = pending.get("kind")
        flows = tuple(pending.get("flows") or ())
        if kind == "clarify" or (kind == "resume" and not what_to_stop(text)):
            named = offers.named_flow(self, text, flows)
            if named is not None:
                return Decision(answer=named)
        found = extract(_YES_NO, text, now=self.now, language=self.language)
        if found is not None and found.is_strict:
            taken = offers.answer_beside(self, found) if kind == "resume" else None
            return taken or Decision(answer="yes" if found.value else "no", rest=found.rest)
        phrase = match_phrase(text)
        if (
            phrase is not None
            and phrase.kind == "cancel"
            and kind in ("resume", "clarify", "confirm_interrupt", "confirm_action", "undo")
        ):
            return Decision(answer="no")
        return None

    def _phrase(self, kind: str, what: str, is_soft: bool, question: CollectStep | None) -> Decision | None:
        state = self.state
        if kind == "cancel":
            if state.active is None and is_soft:
                return Decision(answer="no") if state.pending is None and not state.paused else None
            return Decision(commands=(Command(name="cancel_flow"),))
        if kind == "cancel_named":
            return self._cancel_named(what)
        if kind == "resume":
            return self._resume(what)
        if kind in ("skip", "repeat") and question is not None:
            return Decision(commands=(Command(name=kind),))
        return None

    def _running(self) -> tuple[str, ...]:
        active = (self.state.active.root,) if self.state.active is not None else ()
        return (*active, *(t.root for t in self.state.paused))

    def _cancel_named(self, what: str) -> Decision | None:
        running = self._running()
        if names_any_task(what) and self.state.active is not None:
            return Decision(commands=(Command(name="cancel_flow"),))
        flow = find_flow(what, flow_names(self.config, running))
        if flow is None or not self._is_about_task(what, flow):
            return None
        return Decision(commands=(Command(name="cancel_flow", flow=flow),))

    def _is_about_task(self, what: str, flow: str) -> bool:
        """Whether a cancel by name can mean a task that is not over yet.

        "The reminder to call Bob" is none that is being made about milk, and none where only its question is open
        whether to do it again.
        """
        state = self.state
        task = next(t for t in (state.active, *state.paused) if t is not None and t.root == flow)
        if task.asks_to_redo:
            return False
        names = (*(n for _, all_names in flow_names(self.config, (flow,)) for n in all_names), flow.replace("_", " "))
        more = beyond_name(what, names)
        said = [str(value.value) for value in task.slots.values()]
        return not more or shares_word(more, said)

    def _resume(self, what: str) -> Decision | None:
        paused = tuple(t.root for t in self.state.paused)
        if names_any_task(what):
            if not paused or self.state.active is not None:
                return None
            return Decision(commands=(Command(name="resume_flow", flow=paused[0]),))
        flow = find_flow(what, flow_names(self.config, paused))
        return Decision(commands=(Command(name="resume_flow", flow=flow),)) if flow is not None else None

    # --- corrections ------------------------------------------------------------------------------------

    def correct(self, correction: Correction, text: str) -> Decision | None:
        """Take a correction while nothing is asked."""
        return self._correct(correction, None, text)

    def correct_named(self, text: str) -> Decision | None:
        """Take "the time is ten" for a correction of the slot that is named."""
        named = self._with_named_slot(Correction(about="", value=text))
        return self._correct(named, None, text) if named.about else None

    def _correct(self, correction: Correction, question: CollectStep | None, text: str) -> Decision | None:
        task = self.state.active
        if task is None:
            return None
        correction = self._with_named_slot(correction)
        mine = self.config.slots_of(task.root)
        names = [(s, self._labels(s)) for s in self.config.slots if s in mine]
        filled = [s for s, _ in names if s in self.state.values() and self.config.slots[s].filled_by == "user"]
        if correction.about:
            slot_id = find_slot(correction.about, names)
            if slot_id is None or slot_id not in filled:
                return None
        else:
            slot_id = self._slot_for(correction.value, filled, question)
            if slot_id is None:
                return None
        if not correction.value:
            return Decision(commands=(Command(name="correct_slots", slots={slot_id: None}),))
        value = self._value_for(self.config.slots[slot_id], correction.value)
        if value is None:
            return None
        return Decision(commands=(Command(name="correct_slots", slots={slot_id: value}),))

    def _with_named_slot(self, correction: Correction) -> Correction:
        """Find the slot in what was taken for a value: "no, the number is five", "make it five"."""
        if correction.about or not correction.value:
            return correction
        value = _MAKE_IT.sub("", correction.value)
        match = _SLOT_IS.match(value)
        if match is not None:
            about = next(g for g in (match["about"], match["about_zh"]) if g)
            names = [(s, self._labels(s)) for s in self.config.slots]
            if find_slot(about, names) is not None:
                return Correction(about=about, value=value[match.end() :].strip(" ，,"))
        return Correction(about="", value=value or correction.value)

    def _labels(self, slot_id: str) -> tuple[str, ...]:
        label = self.config.slots[slot_id].label
        return label.all_raw() if label is not None else ()

    def _slot_for(self, value: str, filled: list[str], question: CollectStep | None) -> str | None:
        """Return the slot a correction without a name is about: the newest filled one that takes the value."""
        task = self.state.active
        if task is None or not filled:
            return None
        values = {**self.state.slots, **task.slots}
        newest = sorted(filled, key=lambda s: values[s].turn, reverse=True)
        newest_turn = values[newest[0]].turn
        if not value:
            return newest[0]
        if question is not None and self.typed_value(self.config.slots[question.slot], value) is not None:
            return None
        for slot_id in newest:
            slot = self.config.slots[slot_id]
            if slot.is_free_text and self._is_about_another(slot_id, value, newest):
                continue
            if slot.is_free_text:
                if values[slot_id].turn == newest_turn and (
                    question is None or not self.config.slots[question.slot].is_free_text
                ):
                    return slot_id
            elif self.typed_value(slot, value) is not None:
                return slot_id
        return None

    def _is_about_another(self, text_slot: str, value: str, filled: list[str]) -> bool:
        """Whether a typed slot takes the value which nothing in the free text is like."""
        said = str(self.state.values().get(text_slot))
        typed = [self.config.slots[s] for s in filled if not self.config.slots[s].is_free_text]
        return any(
            self.typed_value(slot, value) is not None and extract(slot, said, now=self.now) is None for slot in typed
        )

    def typed_value(self, slot: Slot, text: str) -> Any:
        """Return the value a correction that is nothing but a value gives a typed slot; None for none."""
        if slot.is_free_text:
            return None
        value = self._amended(slot, text)
        if value is not None:
            return value
        found = extract(slot, text, now=self.now, language=self.language)
        return found.value if found is not None and found.is_strict else None

    def holds_value(self, slot: Slot, text: str) -> bool:
        """Whether a value of a typed slot is anywhere in a text."""
        kinds = ("date", "time", "duration") if slot.type == "datetime" else ()
        return any(
            extract(s, text, now=self.now, language=self.language) is not None
            for s in (slot, *(replace(slot, type=kind) for kind in kinds))
        )

    def _amended(self, slot: Slot, text: str) -> Any:
        """Return what the words make of the value before; a number alone is no length where another slot counts."""
        if slot.type == "duration" and any(s.type in ("integer", "number") for s in self.filled()):
            return None
        return amended(slot, text, self.state.values().get(slot.id), now=self.now)

    def _value_for(self, slot: Slot, text: str) -> Any:
        if slot.is_free_text:
            return free_text(text)
        value = self._amended(slot, text)
        if value is not None:
            return value
        found = extract(slot, text, now=self.now, language=self.language)
        if found is not None:
            return found.value
        result = coerce(slot, text)
        return result.value if result.ok else None

    # --- answers ----------------------------------------------------------------------------------------

    def typed(self, text: str) -> Decision | None:
        """A typed answer to the open question, with what else was said."""
        question = open_question(self.state, self.config)
        if question is None:
            return None
        found = self._extracted(question, text)
        if found is None or not found.is_strict:
            return None
        return Decision(commands=(Command(name="set_slots", slots={question.slot: found.value}),), rest=found.rest)

    def loose(self, text: str) -> Decision | None:
        """A typed answer inside a longer sentence, once nothing else wanted the sentence."""
        question = open_question(self.state, self.config)
        if question is None or is_question(text):
            return None
        found = self._extracted(question, text)
        if found is None:
            return None
        return Decision(commands=(Command(name="set_slots", slots={question.slot: found.value}),), rest=found.rest)

    def _extracted(self, question: CollectStep, text: str) -> Extraction | None:
        slot, task = self.config.slots[question.slot], self.state.active
        if slot.type == "datetime":
            return moment_answer(slot, text, task.days.get(slot.id) if task is not None else None, now=self.now)
        return extract(slot, text, now=self.now, language=self.language)

    def free(self, text: str) -> Decision | None:
        """A free-text answer to the open question."""
        question = open_question(self.state, self.config)
        if question is None:
            return None
        slot = self.config.slots[question.slot]
        if not slot.is_free_text:
            return self.loose(text)
        value = free_text(text)
        if not value or is_hesitation(value):
            return None
        value = corrected_text(self, state_root(self.state) or "", slot, value)
        moment = only_moment(self.config, state_root(self.state) or "")
        if moment is not None and moment.id not in self.state.values():
            split = split_moment(moment, value, self.now)
            if split is not None:
                return Decision(commands=(Command(name="set_slots", slots={slot.id: split[0], moment.id: split[1]}),))
        return Decision(commands=(Command(name="set_slots", slots={slot.id: value}),))

    async def start(self, text: str, matcher: ExampleMatcher) -> Decision | None:
        """A flow start by its examples."""
        match = await matcher.match(text)
        if match is None or match.name not in self.config.user_flows():
            return None
        command = Command(name="start_flow", flow=match.name, by="embedding")
        return Decision(commands=(command,), by="embedding", note=f"{match.name} {match.score:.3f}")

    def accepts(self, text: str) -> bool:
        """Whether an open question takes the text as a typed answer."""
        pending = self.state.pending
        if pending is not None and self._pending(pending, text) is not None:
            return True
        return (
            self.typed(text) is not None or self.late(text) is not None or offers.typed_answer(self, text) is not None
        )


def state_root(state: State) -> str | None:
    """Return the flow of the running task."""
    return state.active.root if state.active is not None else None


def _corrected(slot: Slot, value: Any) -> Decision:
    return Decision(commands=(Command(name="correct_slots", slots={slot.id: value}),))
