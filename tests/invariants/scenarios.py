"""Short conversations with a known end, each through one of the places where an answer can go wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rigs.conversation_rig import BLOCK_S, ConversationRig, letters

from orchestrator.contracts.commands import Notify, UpdateContext
from orchestrator.contracts.dialogue import LlmUnavailable, Message, TurnInput
from orchestrator.contracts.events import Event, InputInterrupt, NotifyRequested, OutputUnduck
from orchestrator.contracts.lanes import GenerationState, InterruptReason
from orchestrator.dialogue.turn_context import CoreTurn
from orchestrator.dialogue.turn_work import Script
from orchestrator.generation import Generation

Scenario = Callable[[ConversationRig], None]


def words_cancel_and_are_answered(rig: ConversationRig) -> None:
    """Cut in the middle, words: cancelled, purged, stored as heard, and the next answer knows it."""
    first = [rig.sentence() for _ in range(3)]
    rig.ask("tell me about boats", *first)
    rig.until(lambda: len(rig.complete_words) >= 3)
    old = rig.core.turns.active
    assert old is not None
    rig.say("what about tomorrow")
    assert old.state is GenerationState.CANCELLED
    assert rig.until(lambda: bool(rig.open_calls()), 3.0)
    second = rig.sentence()
    rig.tokens(second)
    rig.end_model()
    assert rig.until(rig.is_quiet)
    stored = rig.answers()
    assert [entry["status"] for entry in stored] == ["interrupted", "completed"]
    assert "".join(first).startswith(stored[0]["text"])
    assert stored[0]["text"] == " ".join(rig.words_sounded().split()[: len(stored[0]["text"].split())])
    assert letters(rig.words_sounded()) == letters(stored[0]["text"] + stored[1]["text"])
    assert [user.interrupt_hint for user in rig.inputs] == [None, "interrupted"]


def a_cough_is_resumed(rig: ConversationRig) -> None:
    """Cut, nothing understood: it goes on from the cut word, without a model or a voice being asked again."""
    sentences = [rig.sentence(), rig.sentence(), rig.sentence()]
    rig.ask("tell me", *sentences)
    rig.until(lambda: len(rig.complete_words) >= 2)
    rig.seconds(0.06)
    rig.say("", rejected=True)
    assert rig.until(rig.is_quiet)
    assert [p["verdict"] for p in rig.payloads("interrupt:confirm")] == ["resume"]
    assert [p["attempt"] for p in rig.payloads("output:resume")] == [1]
    assert rig.payloads("output:resume")[0]["repeatedWords"] <= 1
    assert rig.voice.calls == len(rig.intents)
    assert len(rig.of("llm:call")) == 1
    assert letters(rig.words_sounded()) == letters("".join(sentences))
    assert rig.answers()[0]["status"] == "completed"


def a_hold_that_hears_nothing_goes_on_once(rig: ConversationRig) -> None:
    """Cut by the stop key of a headset, say: nobody speaks; after the time limit it goes on, once."""
    rig.ask("tell me", rig.sentence(), rig.sentence(6))
    rig.until(lambda: len(rig.complete_words) >= 2)
    rig.vad_cut()
    rig.seconds(1.8)
    assert rig.core.turns.active is not None and rig.core.turns.active.state is GenerationState.SUSPENDED
    assert rig.until(rig.is_quiet)
    assert [(p["verdict"], p["because"]) for p in rig.payloads("interrupt:confirm")] == [("resume", "timeout")]
    assert len(rig.payloads("output:resume")) == 1


def stop_is_silence(rig: ConversationRig) -> None:
    """The button: silence, no reply."""
    rig.ask("tell me", rig.sentence(), rig.sentence(), rig.sentence())
    rig.until(lambda: len(rig.complete_words) >= 2)
    rig.stop_button()
    heard = len(rig.complete_words)
    rig.seconds(3.0)
    assert len(rig.complete_words) == heard
    assert len(rig.of("llm:call")) == 1
    assert rig.answers()[0]["status"] == "interrupted"


def a_late_result_is_set_aside(rig: ConversationRig) -> None:
    """A tool that ends after the cancel: stored under its id, never used."""
    rig.plans.append((("say", rig.sentence(3)), ("tool", "k1"), ("say", rig.sentence(3))))
    rig.type("book it")
    assert rig.until(lambda: bool(rig.tools))
    rig.type("no, leave it")
    rig.advance(3)
    assert len(rig.tools) == 1, "a started effect is not broken off"
    rig.end_tool()
    results = rig.payloads("tool:result")
    assert [result["disposition"] for result in results] == ["quarantined"]
    kept = rig.database.transact_now(lambda db: db.execute("SELECT correlation_id FROM quarantine").fetchall())
    assert [row[0] for row in kept] == [record["correlationId"] for record in rig.of("tool:result")]


def an_effect_waits_while_the_answer_is_held(rig: ConversationRig) -> None:
    """Nothing with an effect begins while nobody knows whether the user has changed their mind."""
    rig.plans.append((("llm",), ("tool", "k1")))
    rig.type("book it")
    rig.until(lambda: bool(rig.open_calls()))
    rig.tokens(rig.sentence(8))
    rig.until(lambda: len(rig.complete_words) >= 1)
    rig.begin_to_speak()
    rig.vad_cut()
    rig.end_model()
    rig.seconds(0.5)
    assert rig.effects_run["k1"] == 0
    rig.finish_utterance("", rejected=True)
    assert rig.until(lambda: bool(rig.tools), 3.0), "a false alarm: it goes on"


def an_effect_waits_and_never_comes(rig: ConversationRig) -> None:
    """The same, but the user did change their mind."""
    rig.plans.append((("llm",), ("tool", "k1")))
    rig.type("book it")
    rig.until(lambda: bool(rig.open_calls()))
    rig.tokens(rig.sentence(8))
    rig.until(lambda: len(rig.complete_words) >= 1)
    rig.begin_to_speak()
    rig.vad_cut()
    rig.end_model()
    rig.seconds(0.3)
    rig.finish_utterance("no, leave it")
    rig.seconds(1.0)
    assert rig.effects_run["k1"] == 0
    assert rig.of("tool:call") == []


def _speak_while_a_tool_works(rig: ConversationRig) -> None:
    """The answer has begun and is silent now, because a tool works; the user speaks, and the tool is done."""
    rig.plans.append((("say", rig.sentence(2)), ("tool", "k1"), ("tool", "k2"), ("say", rig.sentence(2))))
    rig.type("book it")
    assert rig.until(lambda: bool(rig.tools) and len(rig.complete_words) >= 2)
    rig.seconds(0.5)
    active = rig.core.turns.active
    assert active is not None and active.sounded
    rig.begin_to_speak()
    assert active.state is GenerationState.SUSPENDED
    rig.end_tool()
    rig.seconds(1.0)
    assert rig.effects_run["k1"] == 1 and rig.effects_run["k2"] == 0 and len(rig.complete_words) == 2


def an_effect_waits_for_who_speaks_into_the_silence(rig: ConversationRig) -> None:
    """It was nothing: the answer goes on."""
    _speak_while_a_tool_works(rig)
    rig.finish_utterance("", rejected=True)
    assert rig.until(lambda: bool(rig.tools), 3.0)
    rig.end_tool()
    assert rig.until(rig.is_quiet) and len(rig.complete_words) == 4
    assert [p["verdict"] for p in rig.payloads("interrupt:confirm")] == ["resume"]


def an_effect_never_comes_after_words_into_the_silence(rig: ConversationRig) -> None:
    """It was a change of mind, and no addition: some of the answer was heard."""
    _speak_while_a_tool_works(rig)
    rig.finish_utterance("no, leave it")
    rig.seconds(1.0)
    assert rig.effects_run["k2"] == 0 and len(rig.of("tool:call")) == 1
    assert [p["verdict"] for p in rig.payloads("interrupt:confirm")] == ["cancel"]
    assert [user.text for user in rig.inputs] == ["book it", "no, leave it"]


def an_effect_of_unknown_outcome_is_not_repeated(rig: ConversationRig) -> None:
    """Killed while it ran: the same key does not run again."""
    rig.plans.append((("tool", "k1"),))
    rig.type("book it")
    assert rig.until(lambda: bool(rig.tools))
    rig.kill()
    rig.open()
    rig.plans.append((("tool", "k1"),))
    rig.type("book it")
    rig.seconds(3.0)
    assert rig.effects_run["k1"] == 1
    assert not rig.tools


def the_same_event_twice_is_once(rig: ConversationRig) -> None:
    """Duplicates are dropped and counted."""
    event = Event(payload=NotifyRequested(id="n1", text="the kettle boils."), source="rig", dedupe_key="k")
    assert rig.do(lambda: (rig.bus.post(event), rig.bus.post(event))) == (True, False)
    assert rig.bus.counters["dropped:duplicate"] == 1
    assert rig.until(rig.is_quiet)
    assert [p["state"] for p in rig.payloads("notify:state")] == ["due", "spoken"]


def control_comes_first_and_context_is_bounded(rig: ConversationRig) -> None:
    """A thousand pieces of news, one word of control: the word first, then the newest news of each kind."""

    def flood(kinds: int) -> None:
        for number in range(1000):
            rig.core.handle(UpdateContext(source=f"o{number % kinds}", values={"v": number}))
        rig.bus.post(Event(payload=OutputUnduck(at_s=0.0, gain_db=0.0, ramp_s=0.0), source="rig"))

    rig.do(lambda: flood(20))
    order = [record["type"] for record in rig.records if "lane" in record]
    assert order[0] == "output:unduck"
    assert order.count("context:update") == 20
    assert [rig.core.world[f"o{number}"] for number in range(20)] == [{"v": 980 + number} for number in range(20)]
    assert rig.bus.counters["dropped:coalesced"] == 1000 - 20
    begin = len(rig.records)
    rig.do(lambda: flood(1000))
    order = [record["type"] for record in rig.records[begin:] if "lane" in record]
    assert order[0] == "output:unduck"
    assert order.count("context:update") == 64
    assert rig.bus.counters["dropped:overflow"] == 1000 - 64


def an_interrupt_for_what_is_over_changes_nothing(rig: ConversationRig) -> None:
    """It was meant for another answer."""
    rig.ask("tell me", rig.sentence())
    old = rig.core.turns.active
    assert old is not None and rig.until(rig.is_quiet)
    rig.ask("tell me more", rig.sentence(), rig.sentence())
    new = rig.core.turns.active
    rig.post(InputInterrupt(reason=InterruptReason.USER_STOP, by="button"), target_generation_id=old.generation_id)
    assert new is not None and new.state is GenerationState.STREAMING
    assert rig.bus.counters["dropped:stale"] == 1
    assert rig.until(rig.is_quiet)
    assert new.state is GenerationState.COMPLETED


def an_urgent_notice_passes_the_answer(rig: ConversationRig) -> None:
    """The answer stands aside, the notice is said, the answer goes on."""
    sentences = [rig.sentence(), rig.sentence()]
    rig.ask("tell me", *sentences)
    rig.until(lambda: len(rig.complete_words) >= 2)
    rig.do(lambda: rig.core.handle(Notify(id="n1", text="the kettle boils now.", urgent=True)))
    assert rig.until(rig.is_quiet)
    heard = rig.words_sounded()
    before, _, after = heard.partition("the kettle boils now.")
    assert before and after
    assert letters(before + after) == letters("".join(sentences))
    assert [p["state"] for p in rig.payloads("notify:state")] == ["due", "spoken"]


def the_program_ends_while_an_answer_stands_aside(rig: ConversationRig) -> None:
    """In the very moment in which the urgent notice is over and the answer has not gone on yet."""
    rig.ask("tell me", rig.sentence(), rig.sentence())
    rig.until(lambda: len(rig.complete_words) >= 2)
    answer = rig.core.turns.active
    assert answer is not None
    rig.do(lambda: rig.core.handle(Notify(id="n1", text="the kettle boils now.", urgent=True)))
    notice = rig.core.turns.active
    assert notice is not None and notice is not answer
    assert rig.until(lambda: notice.state is GenerationState.COMPLETED)
    assert answer.state is GenerationState.SUSPENDED
    rig.close()
    rig.check()
    assert answer.state is GenerationState.CANCELLED
    rig.open()


def _start_speculative(rig: ConversationRig, script: Script) -> Generation:
    user = TurnInput(text="tell me")
    generation: Generation = rig.do(lambda: rig.core.turns.start(user, script=script, is_speculative=True))
    return generation


def a_speculative_answer_leaves_no_trace(rig: ConversationRig) -> None:
    """It may think, but nothing of it is heard, done or stored until it is confirmed."""

    async def script(turn: CoreTurn) -> None:
        async def effect() -> str:
            rig.effects_run["s"] += 1
            return "done"

        async def both() -> None:
            await turn.commit_early({"settled": 99})
            await turn.effects.run(key="s", name="tool", args={}, effect=effect, timeout_s=5.0)

        await both()
        await turn.reply.say(Message(text="here it is.", source="task"))

    generation = _start_speculative(rig, script)
    rig.seconds(0.5)
    assert rig.effects_run["s"] == 0 and not rig.intents
    assert rig.database.transact_now(lambda db: db.execute("SELECT count(*) FROM effects").fetchone()[0]) == 0
    rig.do(lambda: rig.core.turns.discard(generation, "continued"))
    rig.seconds(0.5)
    assert rig.effects_run["s"] == 0 and not rig.intents and not rig.of("history:commit") and not rig.stored()
    assert {r["type"] for r in rig.records if r.get("generationId")} <= {"generation:state", "speculation:state"}
    confirmed = _start_speculative(rig, script)
    rig.seconds(0.3)
    assert not rig.intents and not rig.of("history:commit")
    rig.do(lambda: rig.core.turns.confirm(confirmed))
    assert rig.until(rig.is_quiet, 5.0)
    assert rig.effects_run["s"] == 1 and rig.answers()[-1]["text"] == "here it is."
    assert [entry["role"] for entry in rig.stored()] == ["user", "assistant"]


def a_model_that_fails_is_said_once(rig: ConversationRig) -> None:
    """It is never stored as an answer, and the next turn works."""
    rig.type("tell me")
    rig.until(lambda: bool(rig.open_calls()))
    rig.tokens(rig.sentence())
    rig.end_model(LlmUnavailable("unreachable"))
    assert rig.until(rig.is_quiet)
    assert "sorry" in rig.words_sounded()
    assert [p["status"] for p in rig.answers()] == ["failed"]
    rig.ask("again", rig.sentence())
    assert rig.until(rig.is_quiet)
    assert rig.answers()[-1]["status"] == "completed"


def a_restart_keeps_what_was_said(rig: ConversationRig) -> None:
    """Stored as heard; the state is the one that was stored; the next turn works."""
    sentences = [rig.sentence(), rig.sentence(), rig.sentence()]
    rig.ask("tell me", *sentences)
    rig.until(lambda: len(rig.complete_words) >= 6)
    rig.stop_button()
    assert rig.until(rig.is_quiet)
    heard = rig.words_sounded()
    state, stored = rig.brain.state, rig.stored()
    assert stored[-1]["text"] == heard
    assert letters(stored[-1]["text"] + stored[-1]["unheard"]) == letters("".join(sentences))
    rig.close()
    rig.open()
    assert (rig.brain.state, rig.stored()) == (state, stored)
    rig.ask("again", rig.sentence())
    assert rig.until(rig.is_quiet)


def go_on_speaks_the_exact_rest(rig: ConversationRig) -> None:
    """From the ledger, without a model, in both languages; "say that again" says all of it."""
    sentences = [rig.sentence(), rig.sentence(), rig.sentence()]
    for words, wanted in (("go on", None), ("再说一遍", "".join(sentences))):
        if wanted is None:
            rig.ask("tell me", *sentences)
            rig.until(lambda: len(rig.complete_words) >= 6)
            rig.say("wait")
            assert rig.until(rig.is_quiet)
        calls, before = len(rig.of("llm:call")), len(rig.complete_words)
        heard = rig.words_sounded()
        rig.say(words, cut=False)
        assert rig.until(rig.is_quiet)
        assert len(rig.of("llm:call")) == calls
        said = " ".join(rig.words_sounded().split()[before:])
        if wanted is None:
            assert letters(heard + said) == letters("".join(sentences))
            assert rig.answers()[-1]["status"] == "completed"
        else:
            assert letters(said) == letters(wanted)


def joined_before_the_first_sound(rig: ConversationRig) -> None:
    """The user goes on before anything sounded: one input, one message."""
    rig.ask("an earlier question", rig.sentence())
    assert rig.until(rig.is_quiet)
    rig.plans.append((("llm",),))
    rig.say("tell me about boats", cut=False)
    rig.advance(2)
    assert len(rig.open_calls()) == 1
    rig.say("and about ships", cut=False)
    rig.advance(2)
    assert rig.inputs[-1].text == "tell me about boats and about ships"
    rig.tokens(rig.sentence())
    rig.end_model()
    assert rig.until(rig.is_quiet)
    said = [entry["text"] for entry in rig.stored() if entry["role"] == "user"]
    assert said == ["an earlier question", "tell me about boats and about ships"]


def an_answer_held_once_waits_for_its_last_words_when_it_is_stopped(rig: ConversationRig) -> None:
    """What it said after it went on counts as heard, though it had been reported as stopped before."""
    rig.plans.append((("say", rig.sentence(8)),))
    rig.type("tell me")
    rig.advance(2)
    rig.do(lambda: rig.core.handle(Notify(id="n1", text="the kettle boils now.", urgent=True)))
    assert rig.until(lambda: len(rig.complete_words) >= 4 + 3)
    rig.stop_button()
    assert rig.until(rig.is_quiet)
    heard = rig.words_sounded().removeprefix("the kettle boils now. ")
    assert heard and letters(rig.answers()[-1]["text"]) == letters(heard)


def words_that_never_come_are_not_waited_for(rig: ConversationRig) -> None:
    """The recogniser is stuck: the answer goes on after a while, and what comes too late is not taken."""
    sentences = [rig.sentence(), rig.sentence()]
    rig.ask("tell me", *sentences)
    rig.until(lambda: len(rig.complete_words) >= 2)
    rig.begin_to_speak()
    rig.vad_cut()
    rig.seconds(0.3)
    rig.end_turn()
    heard = rig.words_sounded()
    rig.seconds(8.0)
    assert rig.words_sounded() == heard
    assert rig.until(rig.is_quiet, 10.0)
    assert letters(rig.words_sounded()) == letters("".join(sentences))
    assert [p["because"] for p in rig.payloads("interrupt:confirm")] == ["timeout"]
    rig.transcribe("what about trains")
    rig.seconds(1.0)
    assert len(rig.inputs) == 1


def calls_with_other_arguments_are_other_calls(rig: ConversationRig) -> None:
    """Idempotency tells arguments apart."""
    done: list[int] = []

    async def script(turn: CoreTurn) -> None:
        for number in (1, 2, 1):

            async def effect(number: int = number) -> int:
                done.append(number)
                return number

            await turn.effects.run(key="k", name="tool", args={"n": number}, effect=effect, timeout_s=5.0)

    rig.do(lambda: rig.core.turns.start(TurnInput(kind="event", event_type="x"), script=script))
    assert rig.until(rig.is_quiet, 5.0)
    assert done == [1, 2]


def a_guess_leaves_the_users_words_unstored(rig: ConversationRig) -> None:
    """An answer made ahead stores nothing until the turn is over; thrown away, it never has."""
    rig.begin_to_speak()
    rig.provisional("tell me about boats")
    rig.seconds(0.3)
    assert [g for g in rig.generations.all if g.is_speculative]
    rig.check_speculation()
    assert not rig.stored()
    rig.go_on_speaking()
    rig.seconds(0.2)
    assert not rig.stored()
    rig.provisional("tell me about boats and ships")
    rig.seconds(0.3)
    rig.check_speculation()
    rig.finish_utterance("tell me about boats and ships")
    rig.advance(2)
    assert [entry["text"] for entry in rig.stored()] == ["tell me about boats and ships"]


def ducking_is_nothing(rig: ConversationRig) -> None:
    """Only lowered: every word is heard once, nothing is confirmed, nothing resumed."""
    sentence = rig.sentence(8)
    rig.ask("tell me", sentence)
    rig.player.duck(gain_db=-18.0618, ramp_s=BLOCK_S)
    rig.seconds(0.3)
    rig.player.unduck(ramp_s=BLOCK_S)
    assert rig.until(rig.is_quiet)
    assert letters(rig.words_sounded()) == letters(sentence)
    assert not rig.of("output:resume") and not rig.of("output:cut")


SCENARIOS: tuple[Scenario, ...] = (
    words_cancel_and_are_answered,
    a_cough_is_resumed,
    a_hold_that_hears_nothing_goes_on_once,
    stop_is_silence,
    a_late_result_is_set_aside,
    an_effect_waits_while_the_answer_is_held,
    an_effect_waits_and_never_comes,
    an_effect_waits_for_who_speaks_into_the_silence,
    an_effect_never_comes_after_words_into_the_silence,
    an_effect_of_unknown_outcome_is_not_repeated,
    the_same_event_twice_is_once,
    control_comes_first_and_context_is_bounded,
    an_interrupt_for_what_is_over_changes_nothing,
    an_urgent_notice_passes_the_answer,
    the_program_ends_while_an_answer_stands_aside,
    a_speculative_answer_leaves_no_trace,
    a_model_that_fails_is_said_once,
    a_restart_keeps_what_was_said,
    go_on_speaks_the_exact_rest,
    joined_before_the_first_sound,
    an_answer_held_once_waits_for_its_last_words_when_it_is_stopped,
    words_that_never_come_are_not_waited_for,
    calls_with_other_arguments_are_other_calls,
    a_guess_leaves_the_users_words_unstored,
    ducking_is_nothing,
)


def run(scenario: Scenario, folder: Path) -> None:
    """Play a scenario to its end; raises if anything is not as it must be."""
    rig = ConversationRig(folder / f"{scenario.__name__}.db")
    try:
        scenario(rig)
        rig.finish_everything()
        rig.check()
        rig.close()
        rig.check()
    finally:
        rig.dispose()
