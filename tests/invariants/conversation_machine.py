"""Random conversations over the real bus, generations, turn loop, ledger, intent queue, player and store.

The rules are what users, models, tools, devices and the world may do at any moment; the rig checks after each what
must never happen, and at the end the events file, the store and one more turn are checked.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from rigs.conversation_rig import BLOCK_S, DUCK_DB, ConversationRig

from orchestrator.bus.bus import Bus
from orchestrator.bus.envelope import Envelope
from orchestrator.contracts.commands import FocusObject, Notify, PostExternalEvent, UpdateContext
from orchestrator.contracts.dialogue import CUT_SHORT, LlmUnavailable
from orchestrator.contracts.events import (
    ContextUpdated,
    Event,
    InputUser,
    MemoryWrite,
    NotifyRequested,
    ObjectRef,
    OutputUnduck,
)

UTTERANCES = (
    "tell me about boats",
    "what about tomorrow",
    "明天怎么样",
    "wait",
    "停一下",
    "wait, I meant the other one",
    "not that",
    "不是这个",
    "and the other one",
    "还有小船",
    "never mind",
    "mm-hm",
    "嗯",
    "yeah",
    "对",
    "go on",
    "继续",
    "say that again",
    "再说一遍",
    "",
    "。",
)
PLANS = ("model", "model", "say", "two", "protected", "tool", "say tool", "tool model", "commit", "raise")


def _fail_on_poison(envelope: Envelope) -> None:
    if envelope.event.source == "poison":
        raise ArithmeticError("a scripted consumer fails")


class Conversations(RuleBasedStateMachine):
    """One conversation, with restarts."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self.rig = ConversationRig(Path(self._folder.name) / "mynah.db")
        self._keys = 0
        self._notices = 0
        self._kills = 0
        self._newest: dict[str, int] = {}
        self._value = 0
        self._poisoned: Bus | None = None
        self._provisional = "tell me about boats"

    # --- the user ---------------------------------------------------------------------------------------

    def _plan(self, name: str) -> None:
        rig = self.rig
        self._keys += 1
        key = f"k{self._keys}"
        rig.plans.clear()
        plans = {
            "model": (("llm",),),
            "say": (("say", rig.sentence() + rig.sentence(3)),),
            "two": (("say", rig.sentence()), ("say", rig.sentence(8))),
            "protected": (("say", rig.sentence(), False), ("say", rig.sentence())),
            "tool": (("tool", key),),
            "say tool": (("say", rig.sentence(4)), ("tool", key), ("say", rig.sentence(4))),
            "tool model": (("tool", key), ("tool", key), ("llm",)),
            "commit": (("commit",), ("say", rig.sentence())),
            "raise": (("say", rig.sentence(3)), ("raise",)),
        }
        rig.plans.append(plans[name])

    @rule(text=st.sampled_from(UTTERANCES[:11]), plan=st.sampled_from(PLANS), wait=st.integers(0, 40))
    def type_something(self, text: str, plan: str, wait: int) -> None:
        self._plan(plan)
        self.rig.type(text)
        self.rig.advance(wait + 1)

    @precondition(lambda self: self.rig.utterance is None)
    @rule(cut=st.booleans(), duck=st.booleans(), wait=st.integers(0, 20))
    def begin_to_speak(self, cut: bool, duck: bool, wait: int) -> None:
        if duck:
            self.rig.player.duck(gain_db=DUCK_DB, ramp_s=BLOCK_S)
        self.rig.begin_to_speak()
        if cut:
            self.rig.advance(3)
            self.rig.vad_cut()
        elif duck:
            self.rig.advance(5)
            self.rig.player.unduck(ramp_s=BLOCK_S)
        self.rig.advance(wait + 1)

    @precondition(lambda self: self.rig.utterance is not None)
    @rule()
    def barge_in(self) -> None:
        self.rig.vad_cut()

    @precondition(lambda self: self.rig.utterance is not None and not self.rig.utterance.transcribed)
    @rule(text=st.sampled_from(UTTERANCES))
    def hear_partial(self, text: str) -> None:
        self.rig.partial(text)

    @precondition(lambda self: self.rig.utterance is not None and not self.rig.utterance.transcribed)
    @rule(
        text=st.sampled_from(UTTERANCES),
        plan=st.sampled_from(PLANS),
        wait=st.integers(0, 20),
        tokens=st.booleans(),
        then=st.sampled_from(("same", "other", "rejected", "goes on", "waits")),
    )
    def fall_silent(self, text: str, plan: str, wait: int, tokens: bool, then: str) -> None:
        """The words are known before the turn is over: an answer may be made ahead."""
        rig = self.rig
        if rig.utterance is None or rig.utterance.turn_ended:
            return
        self._plan(plan)
        rig.provisional(text)
        rig.advance(wait + 1)
        if tokens:
            rig.tokens(rig.sentence())
            rig.advance(2)
        if then == "goes on":
            rig.go_on_speaking()
        elif then != "waits":
            rig.finish_utterance(text if then == "same" else "something else", rejected=then == "rejected")
        rig.advance(wait + 1)

    @precondition(lambda self: self.rig.utterance is not None and not self.rig.utterance.transcribed)
    @rule(text=st.sampled_from(UTTERANCES), plan=st.sampled_from(PLANS), wait=st.integers(0, 40))
    def fall_silent_for_a_moment(self, text: str, plan: str, wait: int) -> None:
        """The words so far may be all: an answer may be made ahead, of which nothing may be noticed yet."""
        self._plan(plan)
        self.rig.provisional(text)
        self.rig.advance(wait + 1)
        self._provisional = text

    @precondition(lambda self: self.rig.utterance is not None and not self.rig.utterance.transcribed)
    @rule(wait=st.integers(0, 20))
    def go_on_after_the_silence(self, wait: int) -> None:
        self.rig.go_on_speaking()
        self.rig.advance(wait + 1)

    @precondition(lambda self: self.rig.utterance is not None and not self.rig.utterance.transcribed)
    @rule(wait=st.integers(0, 60))
    def the_moment_was_the_end(self, wait: int) -> None:
        """What was understood provisionally is what was said."""
        self.rig.finish_utterance(self._provisional)
        self.rig.advance(wait + 1)

    @precondition(lambda self: self.rig.utterance is not None)
    @rule(
        text=st.sampled_from(UTTERANCES),
        is_words_first=st.booleans(),
        gap=st.integers(0, 30),
        rejected=st.booleans(),
        plan=st.sampled_from(PLANS),
        wait=st.integers(0, 30),
    )
    def finish_speaking(self, text: str, is_words_first: bool, gap: int, rejected: bool, plan: str, wait: int) -> None:
        rig = self.rig
        utterance = rig.utterance
        assert utterance is not None
        self._plan(plan)
        if not utterance.ended:
            rig.cease_to_speak()
        if is_words_first and not utterance.transcribed:
            rig.transcribe(text, rejected=rejected)
            rig.advance(gap + 1)
        if not utterance.turn_ended:
            rig.end_turn()
            rig.advance(gap + 1)
        if not utterance.transcribed:
            rig.transcribe(text, rejected=rejected)
        rig.advance(wait + 1)

    @rule()
    def press_stop(self) -> None:
        self.rig.stop_button()

    @rule(blocks=st.integers(1, 120))
    def let_time_pass(self, blocks: int) -> None:
        self.rig.advance(blocks)

    # --- model, tools, voice, devices -------------------------------------------------------------------

    @precondition(lambda self: self.rig.open_calls())
    @rule(count=st.integers(1, 9), is_ended=st.booleans(), wait=st.integers(0, 40))
    def model_speaks(self, count: int, is_ended: bool, wait: int) -> None:
        self.rig.tokens(self.rig.sentence(count))
        if is_ended:
            self.rig.end_model()
        self.rig.advance(wait + 1)

    @precondition(lambda self: self.rig.open_calls())
    @rule(code=st.sampled_from((None, "unreachable", CUT_SHORT)))
    def model_ends(self, code: str | None) -> None:
        self.rig.end_model(LlmUnavailable(code) if code is not None else None)
        self.rig.advance(1)

    @precondition(lambda self: self.rig.tools)
    @rule(ok=st.booleans(), wait=st.integers(0, 20))
    def tool_ends(self, ok: bool, wait: int) -> None:
        self.rig.end_tool(ok=ok)
        self.rig.advance(wait + 1)

    @rule(count=st.integers(1, 2))
    def voice_fails(self, count: int) -> None:
        self.rig.voice.fail_next = count

    @rule(on=st.booleans())
    def mute_voice(self, on: bool) -> None:
        self.rig.mute(on)

    @rule(blocks=st.integers(1, 60))
    def device_goes_and_comes(self, blocks: int) -> None:
        self.rig.lose_device()
        self.rig.advance(blocks)
        self.rig.give_device()

    # --- the world --------------------------------------------------------------------------------------

    @rule(
        urgent=st.booleans(), is_twin=st.booleans(), expires=st.sampled_from([None, 0.05, 2.0]), wait=st.integers(0, 60)
    )
    def notify(self, urgent: bool, is_twin: bool, expires: float | None, wait: int) -> None:
        if not is_twin or not self._notices:
            self._notices += 1
        text = f"notice number {self._notices} is due."
        self.rig.do(
            lambda: self.rig.core.handle(Notify(id=f"n{self._notices}", text=text, urgent=urgent, expires_s=expires))
        )
        self.rig.advance(wait + 1)

    @rule(is_object=st.booleans())
    def something_happens(self, is_object: bool) -> None:
        thing = ObjectRef(type="file", id="f", title="a file")
        command = FocusObject(object=thing) if is_object else PostExternalEvent(type="alarm")
        self.rig.do(lambda: self.rig.core.handle(command))

    @rule(count=st.integers(1, 120), origins=st.integers(1, 90))
    def context_flood(self, count: int, origins: int) -> None:
        rig = self.rig
        order: list[str] = []

        def flood() -> None:
            for number in range(count):
                self._value += 1
                origin = f"o{number % origins}"
                self._newest[origin] = self._value
                rig.core.handle(UpdateContext(source=origin, values={"v": self._value}))
            rig.bus.post(Event(payload=MemoryWrite(text="x"), source="rig"))
            rig.bus.post(
                Event(payload=OutputUnduck(at_s=rig.clock.monotonic_s(), gain_db=0.0, ramp_s=0.0), source="flood")
            )

        begin = len(rig.records)
        rig.do(flood)
        for record in rig.records[begin:]:
            if "lane" in record:
                order.append("control" if record["source"] == "flood" else record["type"])
        assert order.count("control") == 1
        assert "context:update" not in order[: order.index("control")], "control goes first"
        handled = order.count("context:update")
        assert handled == min(count, origins, 64), "one per key, and no more wait than may"
        for number in range(max(0, min(count, origins) - 64), min(count, origins)):
            origin = f"o{number}"
            newest = rig.core.world.get(origin, {}).get("v")
            assert newest is None or newest <= self._newest[origin]
        last = f"o{(count - 1) % origins}"
        assert rig.core.world[last] == {"v": self._newest[last]}, "the newest context wins"

    @rule()
    def the_same_twice(self) -> None:
        rig = self.rig
        self._notices += 1
        notice = NotifyRequested(id=f"n{self._notices}", text=f"notice number {self._notices} once.")
        event = Event(payload=notice, source="rig", dedupe_key=f"d{self._notices}")
        before = len([p for p in rig.payloads("notify:state") if p["state"] == "due"])
        taken = rig.do(lambda: (rig.bus.post(event), rig.bus.post(event)))
        assert taken == (True, False), "the second is a duplicate"
        assert len([p for p in rig.payloads("notify:state") if p["state"] == "due"]) == before + 1

    @rule()
    def malformed(self) -> None:
        before = self.rig.bus.counters["dropped:malformed"]
        assert not self.rig.do(lambda: self.rig.bus.post("no event"))  # type: ignore[arg-type]
        assert self.rig.bus.counters["dropped:malformed"] == before + 1

    @rule()
    def a_consumer_fails(self) -> None:
        if self._poisoned is not self.rig.bus:
            self._poisoned = self.rig.bus
            self.rig.bus.subscribe(ContextUpdated, _fail_on_poison)
        self._value += 1
        self._newest["p"] = self._value
        event = Event(payload=ContextUpdated(origin="p", values={"v": self._value}), source="poison")
        self.rig.do(lambda: self.rig.bus.post(event))
        assert self.rig.core.world["p"] == {"v": self._value}, "the others got it"

    # --- restarts ---------------------------------------------------------------------------------------

    @rule(is_clean=st.booleans())
    def restart(self, is_clean: bool) -> None:
        rig = self.rig
        before = [entry["text"] for entry in rig.stored()]
        state = rig.brain.state
        if is_clean:
            rig.close()
            rig.check()
        else:
            rig.kill()
        rig.open()
        stored = [entry["text"] for entry in rig.stored()]
        assert stored[: len(before)] == before, "what was stored stays"
        if not is_clean:
            assert stored == before
            assert rig.brain.state == state, "the state is the last one stored"
        self._newest.clear()

    # --- what must hold ---------------------------------------------------------------------------------

    @invariant()
    def nothing_forbidden_happened(self) -> None:
        self.rig.check()
        self.rig.check_speculation()
        actives = [g for g in self.rig.generations.all if g.is_active and not g.is_speculative]
        assert len(actives) <= 1 + len(self.rig.core.conversation.held.aside), "one answer at a time"

    def teardown(self) -> None:
        rig = self.rig
        try:
            rig.check()
            rig.mute(False)
            rig.voice.fail_next = 0
            rig.finish_everything()
            rig.check()
            for generation in rig.generations.all:
                assert generation.state.is_final, f"{generation.generation_id} never ended"
            rig.plans.clear()
            sentence = rig.sentence()
            rig.plans.append((("say", sentence),))
            rig.post(InputUser(text="one more question", via="typed"))
            rig.until(rig.is_quiet, 20.0)
            answers = rig.answers()
            assert answers and answers[-1]["text"] == sentence.strip(), "the next turn works"
            rig.close()
            rig.check()
        finally:
            rig.dispose()
            self._folder.cleanup()
