"""Duck, cut, undo: the decisions on plain numbers. One character is a window of 32 ms: # speech, ~ likely, . not."""

import pytest

from audio.barge_in import Action, BargeIn, Evidence, Output
from audio.ears_config import SENSITIVITY, BargeInConfig, VadConfig

WINDOW_S = 0.032
PROBABILITY = {"#": 0.9, "~": 0.42, ".": 0.05}


class Stream:
    """Feeds windows and keeps what was decided when."""

    def __init__(self, config: BargeInConfig | None = None, output: Output = Output.INTERRUPTIBLE) -> None:
        self.barge_in = BargeIn(config or BargeInConfig(), VadConfig())
        self.output = output
        self.over_echo_db: float | None = None
        self.leak_db: float | None = None
        self.residual_db: float | None = None
        self.is_warm = True
        self.windows = 0
        self.actions: list[tuple[Action, float]] = []

    @property
    def now_s(self) -> float:
        return self.windows * WINDOW_S

    def feed(self, pattern: str) -> "Stream":
        for each in pattern:
            start_s = self.now_s
            for part in (1, 2, 3):
                self._decide(start_s + part * 0.008)
            self.windows += 1
            self.barge_in.window(
                Evidence(
                    start_s=start_s,
                    end_s=self.now_s,
                    probability=PROBABILITY[each],
                    residual_db=self.residual_db,
                    over_echo_db=self.over_echo_db,
                    leak_db=self.leak_db,
                    is_warm=self.is_warm,
                )
            )
            self._decide(self.now_s)
        return self

    def names(self) -> list[str]:
        return [action.value for action, _ in self.actions]

    def _decide(self, now_s: float) -> None:
        action = self.barge_in.decide(now_s, self.output)
        if action is not Action.NONE:
            self.actions.append((action, now_s))
            if action is Action.CUT:
                self.output = Output.SILENT


@pytest.mark.parametrize(
    ("pattern", "actions"),
    [
        ("." * 30, []),
        ("...#######", ["duck", "cut"]),
        ("...~" + "." * 12, ["duck", "unduck"]),
        ("...##" + "." * 12, ["duck", "unduck"]),  # a click
        ("...###...###...###...###...", ["duck"]),  # fragments of 96 ms with gaps: low, but never cut
        ("...##.##....", ["duck", "cut"]),  # one missed window does not break a word
        ("...####....", ["duck", "cut"]),
    ],
)
def test_steps(pattern: str, actions: list[str]) -> None:
    assert Stream().feed(pattern).names() == actions


def test_the_first_likely_window_ducks_and_128_ms_cut() -> None:
    stream = Stream().feed("..########")
    assert stream.actions == [(Action.DUCK, pytest.approx(3 * WINDOW_S)), (Action.CUT, pytest.approx(6 * WINDOW_S))]


@pytest.mark.parametrize("sensitivity", sorted(SENSITIVITY))
def test_back_to_full_within_300_ms(sensitivity: str) -> None:
    config = SENSITIVITY[sensitivity]
    stream = Stream(config).feed("...#" + "." * 20)
    assert stream.names() == ["duck", "unduck"]
    likely_until_s = 4 * WINDOW_S
    assert stream.actions[1][1] - likely_until_s + config.unduck_ramp_s <= 0.3


@pytest.mark.parametrize("sensitivity", sorted(SENSITIVITY))
def test_fragments_never_cut_whatever_the_dial(sensitivity: str) -> None:
    stream = Stream(SENSITIVITY[sensitivity]).feed("##..." * 40)
    assert "cut" not in stream.names()


def test_the_dial_orders_the_cuts() -> None:
    times = {}
    for name, config in SENSITIVITY.items():
        stream = Stream(config).feed("#" * 20)
        times[name] = next(at_s for action, at_s in stream.actions if action is Action.CUT)
    assert times["eager"] <= times["normal"] < times["relaxed"]
    assert times["eager"] >= 0.1
    assert times["relaxed"] <= 0.2 + 1e-6


def test_old_voice_does_not_count() -> None:
    stream = Stream(SENSITIVITY["relaxed"]).feed("####" + "." * 14 + "####" + "." * 14)
    assert "cut" not in stream.names()


def test_protected_output_is_neither_ducked_nor_cut() -> None:
    assert Stream(output=Output.PROTECTED).feed("#" * 40).actions == []


def test_what_was_ducked_comes_back_when_a_protected_intent_begins() -> None:
    stream = Stream().feed("..##")
    stream.output = Output.PROTECTED
    assert stream.feed("###").names() == ["duck", "unduck"]


def test_protected_output_outlasts_a_stop_phrase() -> None:
    stream = Stream(output=Output.PROTECTED)
    stream.barge_in.on_phrase()
    assert stream.feed("..").actions == []
    stream.output = Output.INTERRUPTIBLE
    assert stream.feed("..").actions == []


def test_a_stop_phrase_cuts_at_once() -> None:
    stream = Stream().feed("..")
    stream.barge_in.on_phrase()
    assert stream.feed(".").names() == ["cut"]


def test_nothing_is_done_in_silence_but_the_voice_is_remembered() -> None:
    stream = Stream(output=Output.SILENT).feed("#" * 10)
    assert stream.actions == []
    stream.output = Output.INTERRUPTIBLE
    assert stream.feed("#").names() == ["cut"]


def test_after_a_cut_only_fresh_voice_cuts_again() -> None:
    stream = Stream().feed("######")
    assert stream.names() == ["duck", "cut"]
    stream.feed("." * 10)
    stream.output = Output.INTERRUPTIBLE
    stream.feed("." * 10)
    assert stream.names() == ["duck", "cut", "unduck"]
    stream.feed("#####")
    assert stream.names() == ["duck", "cut", "unduck", "duck", "cut"]


def test_a_lowered_voice_comes_back_although_the_output_fell_silent() -> None:
    stream = Stream().feed("##")
    stream.output = Output.SILENT
    assert stream.feed("." * 10).names() == ["duck", "unduck"]


@pytest.mark.parametrize(
    ("residual_db", "is_warm", "actions"),
    [
        (None, True, ["duck", "cut"]),  # nothing sounds at the far end
        (-5.0, True, ["duck", "cut"]),  # about as loud as the echo that was taken out
        (-40.0, True, []),  # the dregs of the echo
        (-5.0, False, []),  # not converged: what is left may be all echo
        (10.0, False, ["duck", "cut"]),
    ],
)
def test_the_gate_knows_the_far_end(residual_db: float | None, is_warm: bool, actions: list[str]) -> None:
    stream = Stream()
    stream.residual_db, stream.is_warm = residual_db, is_warm
    assert stream.feed("#" * 20).names() == actions


@pytest.mark.parametrize(
    ("over_echo_db", "leak_db", "actions"),
    [
        (-9.0, None, []),  # how much leaks through is not known yet
        (-7.0, None, ["duck", "cut"]),
        (-9.0, -30.0, ["duck", "cut"]),  # little leaks through
        (-11.0, -30.0, []),
        (-9.0, -14.0, []),  # a hall: what is left of the echo is loud
        (-6.0, -14.0, ["duck", "cut"]),
        (1.0, 20.0, ["duck", "cut"]),  # whatever leaks, a voice over the echo is the user's
    ],
)
def test_the_gate_knows_how_much_of_the_echo_is_usually_left(
    over_echo_db: float, leak_db: float | None, actions: list[str]
) -> None:
    stream = Stream()
    stream.residual_db, stream.over_echo_db, stream.leak_db = -5.0, over_echo_db, leak_db
    assert stream.feed("#" * 20).names() == actions


def test_a_cold_canceller_needs_more_voice() -> None:
    stream = Stream()
    stream.residual_db, stream.is_warm = 10.0, False
    stream.feed("#" * 20)
    assert stream.actions[1] == (Action.CUT, pytest.approx(5 * WINDOW_S, abs=0.01))


def test_reset_brings_the_voice_back() -> None:
    stream = Stream().feed("##")
    assert stream.barge_in.reset() is Action.UNDUCK
    assert stream.barge_in.reset() is Action.NONE
    assert stream.feed("." * 10).names() == ["duck"]
