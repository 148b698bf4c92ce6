"""Duck, cut, undo: the decisions on plain numbers. One character is a window of 32 ms: # speech, ~ likely, . not."""

import dataclasses
import itertools

import pytest

from audio.barge_in import Action, BargeIn, Evidence, Output, sounding_frames
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


NOISE_DB, VOICE_DB = -70.0, -22.0


def windows_of(levels_db: list[float]) -> list[tuple[float, ...]]:
    """Part frames of 10 ms into windows of 32 ms, as the ears do."""
    ends = [round(index * WINDOW_S / 0.01) for index in range(len(levels_db) // 3)]
    return [tuple(levels_db[begin:end]) for begin, end in itertools.pairwise(ends)]


@pytest.mark.parametrize("sensitivity", sorted(SENSITIVITY))
@pytest.mark.parametrize("lead", range(4))
@pytest.mark.parametrize(("frames", "cuts"), [(5, False), (7, False), (9, False), (10, True), (30, True)])
def test_what_the_vad_remembers_of_a_fragment_never_cuts(sensitivity: str, lead: int, frames: int, cuts: bool) -> None:
    barge_in = BargeIn(SENSITIVITY[sensitivity], VadConfig())
    levels = [NOISE_DB] * lead + [VOICE_DB] * frames + [NOISE_DB] * 40
    actions = []
    for number, inside in enumerate(windows_of(levels)[:8]):
        end_s = (number + 1) * WINDOW_S
        barge_in.window(Evidence(start_s=end_s - WINDOW_S, end_s=end_s, probability=0.9, levels_db=inside))
        actions.append(barge_in.decide(end_s, Output.INTERRUPTIBLE))
    assert (Action.CUT in actions) == cuts


def test_fragments_that_the_vad_drags_out_never_add_up() -> None:
    barge_in = BargeIn(BargeInConfig(), VadConfig())
    actions = []
    for number in range(60):
        end_s = (number + 1) * WINDOW_S
        is_voiced = number % 10 < 5
        levels = (VOICE_DB,) * 3 if number % 10 in (0, 1) else (NOISE_DB,) * 3
        probability = 0.9 if is_voiced else 0.02
        barge_in.window(Evidence(start_s=end_s - WINDOW_S, end_s=end_s, probability=probability, levels_db=levels))
        actions.append(barge_in.decide(end_s, Output.INTERRUPTIBLE))
    assert Action.DUCK in actions and Action.CUT not in actions


def test_a_voice_that_goes_on_over_the_echo_is_no_fragment() -> None:
    """Levels are known where the echo pauses only; a loud moment there must not make a scrap of the rest."""
    barge_in = BargeIn(BargeInConfig(), VadConfig())
    known: list[tuple[float, ...]] = [(VOICE_DB,) * 3, (VOICE_DB - 15.0,) * 3, (), (), ()]
    actions = []
    for number, levels in enumerate(known):
        end_s = (number + 1) * WINDOW_S
        evidence = Evidence(start_s=end_s - WINDOW_S, end_s=end_s, probability=0.9, levels_db=levels)
        barge_in.window(evidence)
        actions.append(barge_in.decide(end_s, Output.INTERRUPTIBLE))
    assert actions.index(Action.CUT) <= 4


def over(probability: float, *, number: int, over_db: float, residual_db: float, leak_db: float | None) -> Evidence:
    """Return the window `number` of something over an echo."""
    return Evidence(
        start_s=number * WINDOW_S,
        end_s=(number + 1) * WINDOW_S,
        probability=probability,
        residual_db=residual_db,
        over_echo_db=over_db,
        leak_db=leak_db,
    )


@pytest.mark.parametrize(
    ("probability", "over_db", "residual_db", "leak_db", "action"),
    [
        (0.2, 3.0, 6.0, -30.0, Action.DUCK),  # far louder than what ever leaks
        (0.1, 3.0, 6.0, -30.0, Action.NONE),  # but nothing like a voice
        (0.2, 3.0, 6.0, -10.0, Action.NONE),  # as loud as what leaks now and then
        (0.2, 3.0, 6.0, None, Action.NONE),  # nobody knows yet
        (0.2, -14.0, 6.0, -40.0, Action.NONE),  # soft
        (0.2, -3.0, 0.0, -33.0, Action.NONE),  # no louder than the echo that sounds just now
    ],
)
def test_what_is_far_louder_than_any_leak_lowers_the_voice_sooner(
    probability: float, over_db: float, residual_db: float, leak_db: float | None, action: Action
) -> None:
    barge_in = BargeIn(BargeInConfig(), VadConfig())
    barge_in.window(over(probability, number=0, over_db=over_db, residual_db=residual_db, leak_db=leak_db))
    assert barge_in.decide(WINDOW_S, Output.INTERRUPTIBLE) is action


@pytest.mark.parametrize(
    ("heard_s", "before_db", "over_db", "windows"),
    [(0.2, -30.0, -6.0, 4), (0.2, -9.0, -6.0, 10), (0.2, -9.0, 3.0, 4), (0.2, -3.0, -1.0, 10), (2.0, -9.0, -6.0, 4)],
    ids=["room", "hall", "voice in a hall", "rest of an echo in a hall", "later"],
)
def test_right_after_a_start_what_does_not_stand_out_from_the_leak_takes_longer_to_cut(
    heard_s: float, before_db: float, over_db: float, windows: int
) -> None:
    barge_in = BargeIn(BargeInConfig(), VadConfig())
    actions = []
    before = 20
    for number in range(before + 20):
        is_voice = number >= before
        probability, level_db = (0.95, over_db) if is_voice else (0.05, before_db)
        evidence = over(probability, number=number, over_db=level_db, residual_db=4.0, leak_db=None)
        barge_in.window(dataclasses.replace(evidence, heard_s=heard_s))
        actions.append(barge_in.decide((number + 1) * WINDOW_S, Output.INTERRUPTIBLE))
    assert actions.index(Action.CUT) - before + 1 == windows
    assert actions.index(Action.DUCK) == before


@pytest.mark.parametrize(("probability", "windows"), [(0.95, 4), (0.55, 7)])
def test_what_the_vad_is_half_sure_of_over_an_echo_takes_longer_to_cut(probability: float, windows: int) -> None:
    barge_in = BargeIn(BargeInConfig(), VadConfig())
    actions = []
    for number in range(12):
        barge_in.window(over(probability, number=number, over_db=-5.0, residual_db=-4.0, leak_db=-40.0))
        actions.append(barge_in.decide((number + 1) * WINDOW_S, Output.INTERRUPTIBLE))
    assert actions.index(Action.CUT) + 1 == windows


@pytest.mark.parametrize(("leak_db", "cuts"), [(-30.0, True), (-10.0, False)])
def test_a_voice_that_the_canceller_spoils_counts_if_it_is_far_louder_than_any_leak(leak_db: float, cuts: bool) -> None:
    barge_in = BargeIn(BargeInConfig(), VadConfig())
    actions = []
    for number in range(8):
        barge_in.window(over(0.4, number=number, over_db=4.0, residual_db=6.0, leak_db=leak_db))
        actions.append(barge_in.decide((number + 1) * WINDOW_S, Output.INTERRUPTIBLE))
    assert (Action.CUT in actions) == cuts


@pytest.mark.parametrize(
    ("sensitivity", "user_db", "level_db", "cuts"),
    [
        ("relaxed", -26.0, -27.0, True),
        ("relaxed", -26.0, -38.0, False),  # a television
        ("relaxed", -38.0, -38.0, True),  # a quiet user
        ("relaxed", None, -38.0, True),  # nobody has spoken yet
        ("normal", -26.0, -38.0, True),
        ("eager", -26.0, -38.0, True),
    ],
)
def test_relaxed_is_not_interrupted_by_a_voice_far_below_the_user(
    sensitivity: str, user_db: float | None, level_db: float, cuts: bool
) -> None:
    barge_in = BargeIn(SENSITIVITY[sensitivity], VadConfig())
    barge_in.user_db = user_db
    actions = []
    for number in range(30):
        end_s = (number + 1) * WINDOW_S
        barge_in.window(Evidence(start_s=end_s - WINDOW_S, end_s=end_s, probability=0.95, level_db=level_db))
        actions.append(barge_in.decide(end_s, Output.INTERRUPTIBLE))
    assert (Action.CUT in actions) == cuts
    assert Action.DUCK in actions


@pytest.mark.parametrize(
    ("levels", "count"),
    [
        ([], 0),
        ([None] * 6, 6),
        ([-20.0, None, None, -40.0], 3),
        ([-70.0] * 6 + [-20.0] * 8 + [-70.0] * 9, 8),  # noise, voice, noise
        ([-46.0, -34.0, -28.0, -22.0, -20.0], 4),  # a word that begins softly counts from 25 dB under its loudest
        ([-20.0] * 5 + [-33.0, -40.0, -46.0], 5),  # what dies away does not
        ([-20.0] * 5 + [-50.0] * 4 + [-22.0] * 5, 10),  # a stop in a word
    ],
)
def test_frames_that_sound(levels: list[float | None], count: int) -> None:
    assert sounding_frames(levels) == count


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
        (-14.0, -30.0, ["duck", "cut"]),  # far more than usually leaks: the soft beginning of a word
        (-17.0, -30.0, ["duck", "cut"]),
        (-19.0, -30.0, []),
        (-17.0, -45.0, ["duck", "cut"]),
        (-19.0, -45.0, []),  # however little leaks
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
    assert stream.feed("." * 250 + "#" * 20).names() == actions


@pytest.mark.parametrize(("is_warm", "actions"), [(True, ["duck", "cut"]), (False, [])])
def test_a_soft_beginning_counts_only_with_a_converged_canceller(is_warm: bool, actions: list[str]) -> None:
    stream = Stream()
    stream.residual_db, stream.over_echo_db, stream.leak_db, stream.is_warm = -16.0, -16.0, -40.0, is_warm
    assert stream.feed("#" * 20).names() == []
    assert stream.feed("." * 250 + "#" * 20).names() == actions


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
