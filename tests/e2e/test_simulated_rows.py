"""Every row of interruption (spec §4) through the engine of `mynah simulate`, proven from the loudspeaker's track."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from bench import stimuli
from rigs.simulated_rig import Heard, Sound, TopicLlm, converse, plain, words_of

from audio.ports import Samples
from audio.simulated import MIC_RATE_HZ
from audio.stt.settings import CostTable
from desktop.simulate import load_track
from orchestrator.contracts.commands import PushToTalk, SendText, Stop

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SAILORS = (
    "Long ago seven brave sailors crossed an unknown ocean without maps. Their captain trusted only stars, winds and "
    "her own quiet heart. After forty stormy nights they found green islands full of singing birds. Nobody there had "
    "ever seen such tall ships, so everyone danced until morning. Later those travellers built small houses beside a "
    "clear river."
)
MOUNTAINS = "Mountains keep still."
ANSWERS = {"mountain": MOUNTAINS, "天气": MOUNTAINS, "sea": SAILORS}
QUESTION = "Can you tell me something about the sea?"
ASK_S = 1.0
Recording = Callable[[str], Samples]


@pytest.fixture(scope="session")
def recording(speech_dir: Path) -> Recording:
    def load(name: str) -> Samples:
        return load_track(speech_dir / f"{name}.wav")

    return load


def question(recording: Recording, text: str = QUESTION) -> Sound:
    return Sound(samples=recording("en_card_004"), text=text)


def assert_said_whole(heard: Heard, text: str, *, end_s: float | None = None) -> None:
    """Prove from the track that `text` sounded from its beginning to its end, and how little of it twice."""
    wanted = words_of(text)
    assert len(set(wanted)) == len(wanted), "each word of the answer has a tone of its own"
    clause_of = np.cumsum([0] + [token[-1] in ",.!?" for token in text.split()])[: len(wanted)]
    place = repeated = rewinds = 0
    for word, part in heard.words(end_s=end_s):
        if part < 0.9 or word not in wanted:
            continue
        at = wanted.index(word)
        assert at <= place, f"{wanted[place:at]} did not sound whole before {word}\n{heard.story()}"
        if at < place:
            rewinds += 1
            repeated += place - at
            assert clause_of[at] == clause_of[place - 1], f"more than a clause was said again\n{heard.story()}"
        place = at + 1
    assert place == len(wanted), f"{wanted[place:]} never sounded\n{heard.story()}"
    resumes = heard.payloads("output:resume")
    assert rewinds <= len(resumes)
    assert repeated <= sum(payload["repeatedWords"] for payload in resumes)


def assert_resumed(heard: Heard, verdicts: list[tuple[str, str]], cuts: int) -> None:
    """The answer went on each time from what was held: one model call, each sentence synthesised once."""
    assert heard.verdicts() == verdicts, heard.story()
    assert len(heard.of("output:cut")) == cuts, heard.story()
    assert heard.final_states() == ["COMPLETED"], heard.story()
    assert len(heard.llm.requests) == 1
    synthesised = [record["intentId"] for record in heard.of("tts:first_pcm")]
    assert len(synthesised) == len(set(synthesised)) == len(heard.voice.said)
    assert [(p["status"], words_of(p["text"])) for p in heard.answers()] == [("completed", words_of(SAILORS))]
    assert_said_whole(heard, SAILORS)


NOTHING = ("resume", "nothing")
BACKCHANNEL = ("resume", "backchannel")


def noise(name: str, seed: int) -> Sound:
    """A noise of a room; a recogniser makes something of it that it does not believe."""
    return Sound(samples=stimuli.synthetic(name, seed).samples, text="Thank you.", avg_logprob=-2.0)


def test_noises_that_cut_are_resumed(tmp_path: Path, recording: Recording) -> None:
    sounds = {ASK_S: question(recording), 5.0: noise("laugh", 1), 9.0: noise("babble", 1), 15.0: noise("laugh", 2)}
    heard = converse(tmp_path, sounds, length_s=19.0, llm=TopicLlm(ANSWERS))
    assert_resumed(heard, [NOTHING] * 3, cuts=3)


@pytest.mark.parametrize(
    ("carrier", "text", "language"),
    [("en_card_001", "Yeah, right.", "en"), pytest.param("zh_sc_TV-1", "嗯，对。", "zh", marks=pytest.mark.long)],
)
def test_a_backchannel_is_resumed(tmp_path: Path, recording: Recording, carrier: str, text: str, language: str) -> None:
    backchannel = Sound(samples=recording(carrier), text=text, language=language)
    sounds = {ASK_S: question(recording), 5.0: backchannel, 10.0: backchannel}
    heard = converse(tmp_path, sounds, length_s=15.0, llm=TopicLlm(ANSWERS))
    assert_resumed(heard, [BACKCHANNEL] * 2, cuts=2)


DOOR = """
slots:
  open_door: {type: boolean, label: door}
flows:
  door:
    name: the door
    examples: [mind the door]
    steps:
      - {id: start, type: start, next: ask}
      - id: ask
        type: collect
        slot_name: open_door
        response: "Shall Peter open every single window while seven cats keep sleeping?"
        next: done
      - {id: done, type: action, action: action_response, args: {text: "Noted {{ slots.open_door }}."}, next: end}
      - {id: end, type: end}
"""


@pytest.mark.parametrize(
    ("carrier", "text", "language"),
    [
        ("en_card_001", "Yeah.", "en"),
        pytest.param("zh_sc_TV-1", "对。", "zh", marks=pytest.mark.long),
        pytest.param("zh_sc_TV-1", "嗯。", "zh", marks=pytest.mark.long),
    ],
)
def test_a_yes_to_the_running_question_is_an_answer(
    tmp_path: Path, recording: Recording, carrier: str, text: str, language: str
) -> None:
    folder = tmp_path / "flows"
    folder.mkdir()
    (folder / "door.yml").write_text(DOOR, encoding="utf-8")
    yes = Sound(samples=recording(carrier), text=text, language=language)
    sounds = {ASK_S: question(recording, "Mind the door."), 4.5: yes}
    heard = converse(tmp_path, sounds, length_s=9.0, llm=TopicLlm(ANSWERS), flows=folder)
    assert heard.verdicts() == [("cancel", "words")], heard.story()
    assert heard.inputs()[-1] == text
    slots = [(p["slot"], p["new"]) for p in heard.payloads("flow:slot") if p["accepted"]]
    assert slots == [("open_door", True)], heard.story()
    assert "noted" in [word for word, _ in heard.words(5.0)] and "sleeping" not in [word for word, _ in heard.words()]


def scraps_of(samples: Samples, length_s: float, count: int) -> list[Samples]:
    """Cut `count` pieces out of a recording, from its loudest half, without clicks."""
    size = round(length_s * MIC_RATE_HZ)
    edge = np.linspace(0.0, 1.0, MIC_RATE_HZ // 500, dtype=np.float32)
    pieces = [samples[begin : begin + size].copy() for begin in range(0, len(samples) - size, size)]
    loud = sorted(pieces, key=lambda piece: -float(np.square(piece).sum()))[: len(pieces) // 2]
    chosen = loud[:: max(1, len(loud) // count)][:count]
    for piece in chosen:
        piece[: len(edge)] *= edge
        piece[-len(edge) :] *= edge[::-1]
    return chosen


@pytest.mark.parametrize("length_s", [0.08, pytest.param(0.05, marks=pytest.mark.long)])
def test_scraps_of_voice_only_duck_and_the_volume_is_back_within_300_ms(
    tmp_path: Path, recording: Recording, length_s: float
) -> None:
    pieces = [
        piece
        for name in ("en_az_weather", "zh_azmix_1", "en_pv_3d81fdaa")
        for piece in scraps_of(recording(name), length_s, 4)
    ]
    sounds = {5.0 + 0.7 * number: Sound(samples=piece) for number, piece in enumerate(pieces)}
    heard = converse(tmp_path, {ASK_S: question(recording), **sounds}, length_s=15.0, llm=TopicLlm(ANSWERS))
    assert heard.of("output:cut") == [] and heard.verdicts() == [], heard.story()
    assert [p["status"] for p in heard.answers()] == ["completed"] and len(heard.inputs()) == 1
    assert_said_whole(heard, SAILORS)
    downs, ups = ([p["at_s"] - heard.begin_s for p in heard.payloads(f"output:{kind}")] for kind in ("duck", "unduck"))
    assert 0 < len(downs) == len(ups)
    for down_s, up_s in zip(downs, ups, strict=True):
        last = max(at_s + length_s for at_s in sounds if at_s < down_s)
        assert down_s < up_s < last + 0.3, heard.story()
        whole = heard.loudness_db(down_s - 1.0, down_s)
        assert heard.loudness_db(last + 0.3, last + 0.5) > whole - 6.0, heard.story()


def test_its_own_words_are_no_interruption(tmp_path: Path, recording: Recording) -> None:
    echo = Sound(samples=recording("en_sns_0880"), text="brave sailors crossed an unknown ocean")
    heard = converse(tmp_path, {ASK_S: question(recording), 6.0: echo}, length_s=14.0, llm=TopicLlm(ANSWERS))
    assert_resumed(heard, [("resume", "echo")], cuts=1)


def test_nothing_recognised_and_a_recogniser_that_fails(tmp_path: Path, recording: Recording) -> None:
    nothing = Sound(samples=recording("en_card_003"), text="")
    failing = Sound(samples=recording("en_az_weather"), fails=True)
    sounds = {ASK_S: question(recording), 5.0: nothing, 10.0: failing}
    heard = converse(tmp_path, sounds, length_s=15.0, llm=TopicLlm(ANSWERS))
    assert_resumed(heard, [NOTHING] * 2, cuts=2)
    assert [p["part"] for p in heard.payloads("app:error")] == ["stt"], "said once"


@pytest.mark.long
def test_a_recogniser_that_does_not_answer_is_not_waited_for_forever(
    tmp_path: Path, recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = CostTable.cost_s
    monkeypatch.setattr(CostTable, "cost_s", lambda self, **f: 30.0 if f["audio_s"] > 3.0 else usual(self, **f))
    lost = Sound(samples=recording("en_sns_0880"), text="What about the mountains?")
    heard = converse(tmp_path, {ASK_S: question(recording), 5.0: lost}, length_s=40.0, llm=TopicLlm(ANSWERS))
    assert_resumed(heard, [("resume", "timeout")], cuts=1)
    assert len(heard.inputs()) == 1, "what comes after that is too late"


def test_push_to_talk_cuts_at_once_and_with_nothing_said_it_goes_on(tmp_path: Path, recording: Recording) -> None:
    at = {5.0: PushToTalk(down=True), 6.0: PushToTalk(down=False)}
    heard = converse(tmp_path, {ASK_S: question(recording)}, length_s=12.0, llm=TopicLlm(ANSWERS), at=at)
    assert_resumed(heard, [NOTHING], cuts=1)
    (cut,) = heard.payloads("output:cut")
    assert cut["lastSample_at_s"] - heard.begin_s < 5.1


def test_push_to_talk_words_are_answered(tmp_path: Path, recording: Recording) -> None:
    words = Sound(samples=recording("en_az_weather"), text="What about mountains?")
    at = {5.0: PushToTalk(down=True), 7.6: PushToTalk(down=False)}
    heard = converse(tmp_path, {ASK_S: question(recording), 5.3: words}, length_s=12.0, llm=TopicLlm(ANSWERS), at=at)
    assert heard.verdicts() == [("cancel", "words")], heard.story()
    assert heard.payloads("input:user")[-1]["via"] == "ptt"
    assert heard.final_states() == ["CANCELLED", "COMPLETED"]
    assert_answered_anew(heard, 5.1)


def assert_answered_anew(heard: Heard, silent_from_s: float) -> None:
    """The old answer ended for good, and only the new one sounded after it."""
    after = [word for word, _ in heard.words(silent_from_s)]
    assert after == words_of(MOUNTAINS), heard.story()
    first, second = heard.answers()
    assert (first["status"], second["status"]) == ("interrupted", "completed")
    assert_kept_as_heard(heard, first["text"], silent_from_s)


def assert_kept_as_heard(heard: Heard, text: str, end_s: float) -> None:
    """What history keeps of the interrupted answer is what sounded whole, to the word."""
    sounded = [word for word, part in heard.words(end_s=end_s) if part >= 0.9]
    assert sounded == words_of(SAILORS)[: len(sounded)], heard.story()
    cut = [plain(p["text"]) for p in heard.payloads("output:word") if p["cut"]]
    if sounded[-1:] == cut[:1] and len(sounded) > len(words_of(text)):
        # The player cut it in its last moment; on the track that looks like all of it.
        sounded.pop()
    assert words_of(text) == sounded, heard.story()


def test_words_cancel_and_are_answered(tmp_path: Path, recording: Recording) -> None:
    words = Sound(samples=recording("zh_azmix_1"), text="今天天气怎么样", language="zh")
    heard = converse(tmp_path, {ASK_S: question(recording), 6.0: words}, length_s=12.0, llm=TopicLlm(ANSWERS))
    assert heard.verdicts() == [("cancel", "words")]
    assert "天气" in heard.llm.asked[-1]
    assert_answered_anew(heard, 6.8)


PAUSES = [pytest.param("en_card_001", "Hold on.", "en", marks=pytest.mark.long), ("zh_sc_TV-1", "哎，等一下。", "zh")]


@pytest.mark.parametrize(("carrier", "text", "language"), PAUSES)
def test_a_pause_phrase_is_silence_without_a_reply(
    tmp_path: Path, recording: Recording, carrier: str, text: str, language: str
) -> None:
    phrase = Sound(samples=recording(carrier), text=text, language=language)
    heard = converse(tmp_path, {ASK_S: question(recording), 6.0: phrase}, length_s=12.0, llm=TopicLlm(ANSWERS))
    assert heard.verdicts() == [("stop_only", "words")], heard.story()
    assert heard.words(6.6) == []
    assert heard.final_states() == ["CANCELLED"]
    assert len(heard.llm.requests) == 1 and len(heard.inputs()) == 1
    assert_kept_as_heard(heard, heard.answers()[0]["text"], 6.6)


@pytest.mark.parametrize(
    ("carrier", "text", "language"),
    [("en_card_003", "Not that.", "en"), pytest.param("zh_azmix_5", "不是这个。", "zh", marks=pytest.mark.long)],
)
def test_an_objection_is_answered(tmp_path: Path, recording: Recording, carrier: str, text: str, language: str) -> None:
    phrase = Sound(samples=recording(carrier), text=text, language=language)
    heard = converse(tmp_path, {ASK_S: question(recording), 6.0: phrase}, length_s=12.0, llm=TopicLlm(ANSWERS))
    assert heard.verdicts() == [("cancel", "words")], heard.story()
    assert heard.payloads("input:user")[-1]["interruptHint"] == "objection"
    assert heard.final_states() == ["CANCELLED", "COMPLETED"]
    assert "quite" in [word for word, _ in heard.words(7.0)], "it asks back or answers anew"


def test_what_follows_a_pause_phrase_is_the_input(tmp_path: Path, recording: Recording) -> None:
    words = Sound(samples=recording("en_az_weather"), text="Wait, I meant the mountain.")
    heard = converse(tmp_path, {ASK_S: question(recording), 6.0: words}, length_s=12.0, llm=TopicLlm(ANSWERS))
    assert heard.inputs()[-1] == "I meant the mountain."
    assert_answered_anew(heard, 6.6)


GO_ON = [
    pytest.param("Go on.", "Say that again.", "en", marks=pytest.mark.long),
    ("继续。", "再说一遍。", "zh"),
]


@pytest.mark.parametrize(("go_on", "again", "language"), GO_ON)
def test_go_on_and_say_that_again(tmp_path: Path, recording: Recording, go_on: str, again: str, language: str) -> None:
    sounds = {
        ASK_S: question(recording),
        6.0: Sound(samples=recording("en_card_001"), text="Hold on."),
        9.0: Sound(samples=recording("en_card_003"), text=go_on, language=language),
        26.0: Sound(samples=recording("zh_azmix_5"), text=again, language=language),
    }
    heard = converse(tmp_path, sounds, length_s=30.0, llm=TopicLlm(ANSWERS))
    story = heard.story()
    assert len(heard.llm.requests) == 1, "neither asks a model"
    first, rest, repeated = heard.answers()
    whole = words_of(SAILORS)
    assert (first["status"], rest["status"], repeated["status"]) == ("interrupted", "completed", "completed"), story
    assert words_of(first["text"]) + words_of(rest["text"]) == whole, "the rest follows the heard words exactly"
    assert [word for word, part in heard.words(9.0, 26.0) if part >= 0.9] == words_of(rest["text"])
    assert [word for word, part in heard.words(26.0) if part >= 0.9] == words_of(repeated["text"])
    assert words_of(repeated["text"]) == whole, "all of the answer, its continuation included"


def test_the_stop_button_is_silence_at_once(tmp_path: Path, recording: Recording) -> None:
    heard = converse(tmp_path, {ASK_S: question(recording)}, length_s=9.0, llm=TopicLlm(ANSWERS), at={6.0: Stop()})
    assert heard.words(6.1) == []
    assert heard.final_states() == ["CANCELLED"]
    assert_kept_as_heard(heard, heard.answers()[0]["text"], 6.1)


def test_typed_text_while_it_speaks(tmp_path: Path, recording: Recording) -> None:
    at = {6.0: SendText(text="What about the mountains?")}
    heard = converse(tmp_path, {ASK_S: question(recording)}, length_s=9.0, llm=TopicLlm(ANSWERS), at=at)
    assert [p["by"] for p in heard.payloads("input:interrupt")] == ["typed"]
    assert_answered_anew(heard, 6.1)


@pytest.mark.parametrize("text", [pytest.param("stop", marks=pytest.mark.long), "停一下"])
def test_a_typed_stop_phrase_is_silence(tmp_path: Path, recording: Recording, text: str) -> None:
    at = {6.0: SendText(text=text)}
    heard = converse(tmp_path, {ASK_S: question(recording)}, length_s=9.0, llm=TopicLlm(ANSWERS), at=at)
    assert heard.words(6.1) == [] and len(heard.inputs()) == 1
    assert heard.verdicts() == [("stop_only", "words")]


WARNING = "Careful now, boiling water scalds little fingers, never carry open kettles near children."
FLOWS = f"""
flows:
  warn:
    name: a warning
    examples: [warn me about kettles]
    steps:
      - {{id: start, type: start, next: warn}}
      - id: warn
        type: action
        action: action_response
        args: {{text: "{WARNING}", interruptible: false}}
        next: end
      - {{id: end, type: end}}
"""


@pytest.fixture
def flows(tmp_path: Path) -> Path:
    folder = tmp_path / "flows"
    folder.mkdir()
    (folder / "warn.yml").write_text(FLOWS, encoding="utf-8")
    return folder


RAILS = f"""
user_intents:
  ask for a warning: ["Warn me about kettles."]
rails:
  warn:
    steps:
      - user: ask for a warning
      - {{say: "{WARNING}", interruptible: false}}
"""


def test_a_rail_marks_what_may_not_be_interrupted(tmp_path: Path, recording: Recording) -> None:
    folder = tmp_path / "flows"
    folder.mkdir()
    (folder / "rails.yml").write_text(RAILS, encoding="utf-8")
    words = Sound(samples=recording("en_az_weather"), text="What about mountains?")
    sounds = {ASK_S: question(recording, "Warn me about kettles."), 4.5: words}
    heard = converse(tmp_path, sounds, length_s=8.0, llm=TopicLlm(ANSWERS), flows=folder)
    assert heard.of("output:cut") == [] and heard.of("output:duck") == [], heard.story()
    assert [word for word, _ in heard.words()] == words_of(WARNING) + words_of(MOUNTAINS)


@pytest.mark.long
def test_what_may_not_be_interrupted_is_said_to_its_end_and_then_answered(
    tmp_path: Path, recording: Recording, flows: Path
) -> None:
    words = Sound(samples=recording("en_az_weather"), text="What about mountains?")
    sounds = {ASK_S: question(recording, "Warn me about kettles."), 4.5: words}
    heard = converse(tmp_path, sounds, length_s=8.0, llm=TopicLlm(ANSWERS), flows=flows)
    assert heard.of("output:cut") == [], heard.story()
    warning, answer = heard.answers()
    assert (warning["status"], answer["text"]) == ("completed", MOUNTAINS)
    said = [word for word, _ in heard.words()]
    assert said == words_of(warning["text"]) + words_of(MOUNTAINS), "all, then the answer to what was said over it"
    assert words_of(WARNING) == words_of(warning["text"])[-len(words_of(WARNING)) :]


def test_the_stop_button_stops_what_may_not_be_interrupted(tmp_path: Path, recording: Recording, flows: Path) -> None:
    sounds = {ASK_S: question(recording, "Warn me about kettles.")}
    heard = converse(tmp_path, sounds, length_s=7.0, llm=TopicLlm(ANSWERS), at={5.0: Stop()}, flows=flows)
    assert heard.words(5.1) == [] and heard.final_states() == ["CANCELLED"], heard.story()
    assert 0 < len(heard.words()) < len(words_of(WARNING))


def test_a_noise_before_the_first_sound_holds_the_answer_and_releases_it(tmp_path: Path, recording: Recording) -> None:
    sounds = {ASK_S: question(recording), 3.6: noise("laugh", 1)}
    heard = converse(tmp_path, sounds, length_s=7.0, llm=TopicLlm(ANSWERS, first_token_s=1.3))
    assert heard.final_states() == ["COMPLETED"]
    changes = [(p["to"], p["reason"]) for p in heard.payloads("generation:state")]
    assert ("SUSPENDED", "user_spoke_first") in changes
    assert heard.verdicts() == [NOTHING]
    held, released = (
        next(r["t"] for r in heard.of("generation:state") if r["payload"][key] == "SUSPENDED") for key in ("to", "from")
    )
    first = heard.of("output:first_sound")[0]["payload"]["at_s"]
    assert held < heard.of("llm:end")[0]["t"] if heard.of("llm:end") else held < released
    assert first >= released, "no sound while it was held, though it was ready"
    assert heard.words(held - heard.begin_s, released - heard.begin_s) == []
    assert len(heard.llm.requests) == 1
    assert_said_whole(heard, SAILORS)


def test_words_before_the_first_sound_are_joined(tmp_path: Path, recording: Recording) -> None:
    more = Sound(samples=recording("en_az_weather"), text="And the mountain air.")
    heard = converse(
        tmp_path, {ASK_S: question(recording), 3.6: more}, length_s=8.0, llm=TopicLlm(ANSWERS, first_token_s=3.0)
    )
    assert heard.final_states() == ["CANCELLED", "COMPLETED"]
    assert heard.inputs()[-1] == f"{QUESTION} And the mountain air."
    assert len(heard.answers()) == 1, "of the first nothing was heard, so nothing is kept"
