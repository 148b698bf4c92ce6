"""Every number of the ears, in one place, with its unit; and the presets of the two dials."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from orchestrator.contracts.errors import InputError

RATE_HZ = 16_000
"""Rate of everything behind the first resampler."""

FRAME_SAMPLES = 160
"""10 ms at `RATE_HZ`: what the echo canceller and VAD 1 take."""

FRAME_S = FRAME_SAMPLES / RATE_HZ

WINDOW_SAMPLES = 512
"""32 ms at `RATE_HZ`: what VAD 2 takes."""

WINDOW_S = WINDOW_SAMPLES / RATE_HZ


_OFF_DB = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EchoConfig:
    """Echo cancellation.

    `far_active_db` is the level (dBFS) of a reference frame that counts as sound; `far_tail_s` how long after it
    echo may still arrive (room, device delay); `delay_hint_s` the expected delay, none lets the canceller find it.
    Headphones: there is no echo if, of the last `presence_samples` looks (one per 0.1 s of output over
    `presence_far_db`; `presence_first_samples` are enough to begin with), many saw the microphone within
    `presence_excess_db` of its noise floor; then the canceller is given no reference. `detect_presence` False always
    presumes echo. The loudness of the echo is followed at once when it rises and falls by `echo_fall_db_per_s`. The
    canceller is warm once it took out `warm_loss_db` (median of the last `convergence_steps` tenths of a second of
    loud echo, `warm_steps` at least); how much leaks through is learned from the last `leak_steps` tenths of a second
    of output. Half duplex: after `untamed_s` of loud echo with a loss under `untamed_loss_db` nobody is listened to
    while output sounds, until the loss was over `warm_loss_db` for `tamed_s`.
    """

    enabled: bool = True
    noise_suppression: bool = True
    high_pass: bool = True
    far_active_db: float = -60.0
    far_tail_s: float = 0.35
    delay_hint_s: float | None = None
    detect_presence: bool = True
    presence_far_db: float = -45.0
    presence_excess_db: float = 6.0
    presence_samples: int = 15
    presence_first_samples: int = 3
    echo_fall_db_per_s: float = 8.0
    convergence_steps: int = 20
    warm_steps: int = 4
    warm_loss_db: float = 12.0
    leak_steps: int = 80
    untamed_s: float = 4.0
    untamed_loss_db: float = 5.0
    tamed_s: float = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class VadConfig:
    """The two VADs.

    `vad1_mode` is 0 (passes most) to 3; VAD 2 runs from the first frame that VAD 1 passes until `gate_hold_s` after
    the last one, and is warmed up with the `warm_up_windows` windows before. `start_probability` makes a window
    voiced after silence, `stop_probability` keeps it voiced after sound.
    """

    vad1_mode: int = 2
    gate_hold_s: float = 0.5
    warm_up_windows: int = 8
    start_probability: float = 0.5
    stop_probability: float = 0.35


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointConfig:
    """When an utterance begins and when the turn is over; all times in seconds.

    `onset_voiced_s` of sound that is voiced without a gap over `fragment_gap_s` begins an utterance, so shorter
    fragments never do. `decode_after_s` after the voice ended, an early final is decoded. How long the silence lasts
    that ends the turn depends on its words: `finish_silence_s` after a finished sentence, `answer_silence_s` after
    just the answer that was asked for, `hold_silence_s` in mid-sentence, `wait_silence_s` after "let me think",
    `end_silence_s` when they don't tell, `decode_wait_s` (if longer) until they are known. A sentence is finished if
    the recogniser finds its end at least `sure_end_chance` likely (the curve in docs/ears.md).
    From `split_after_s` on, a long turn is split in its next pause of `split_pause_s`, at the latest at `limit_s`.
    `lead_s` of audio before the onset goes to the recogniser, at most `pre_roll_s` is kept; a push-to-talk turn goes on
    for `ptt_tail_s` after the key went up.
    """

    onset_voiced_s: float = 0.096
    fragment_gap_s: float = 0.07
    finish_silence_s: float = 0.35
    answer_silence_s: float = 0.25
    end_silence_s: float = 0.75
    hold_silence_s: float = 1.4
    wait_silence_s: float = 5.0
    decode_wait_s: float = 1.2
    sure_end_chance: float = 0.96
    decode_after_s: float = 0.064
    split_after_s: float = 22.0
    split_pause_s: float = 0.2
    limit_s: float = 29.0
    lead_s: float = 0.25
    ptt_lead_s: float = 0.3
    pre_roll_s: float = 0.8
    ptt_tail_s: float = 0.1
    back_track_s: float = 0.16
    partial_first_s: float = 0.6
    partial_every_s: float = 0.5
    partial_retry_s: float = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class BargeInConfig:
    """When the voice is lowered and when it is cut (the dial "how easily it can be interrupted").

    A window with at least `duck_probability` ducks to `duck_gain_db` (≤ −12) over `duck_ramp_s`; `unduck_after_s`
    without one brings the voice back over `unduck_ramp_s` (together ≤ 0.3 s). `cut_voiced_s` of voice within the last
    `cut_within_s` cuts; stretches under `fragment_s` never count. What VAD 2 says is multiplied by `voice_weight`
    before it counts as voice, and a voice more than `quiet_under_db` below the user's usual level does not cut. While
    output sounds, a window counts only if what the echo canceller left is at most `residual_gate_db` below the echo it
    took out, at most `echo_gate_db` below that echo at its loudest of late, and `leak_margin_db` above what usually
    leaks through; then it counts in full from `sure_probability` on. Until the leak is known, `first_echo_gate_db`
    holds; in the first `first_heard_s` of loud echo, what is neither `first_margin_db` above all that was taken for
    echo so far nor `first_cut_over_db` above the loudest echo counts for `first_weight` times as much voice, within
    `first_within_s`. Once the canceller was warm for `clear_after_s` of output, what is at most `clear_gate_db` below
    the loudest echo and at least `clear_margin_db` above the usual leak counts in any case. What is far louder than
    the leak (`loud_margin_db` above it, at most `loud_gate_db` below the loudest echo and at least `loud_over_db` above
    the present one) ducks at `loud_duck_probability` and counts for `loud_weight` times as much voice: over a loud echo
    the canceller distorts the user. Until the canceller is warm, `warm_up_cut_voiced_s` and `warm_up_gate_db` (in place
    of `residual_gate_db`) hold.
    """

    duck_probability: float = 0.4
    duck_gain_db: float = -18.0
    duck_ramp_s: float = 0.02
    unduck_after_s: float = 0.18
    unduck_ramp_s: float = 0.08
    voice_weight: float = 1.0
    quiet_under_db: float = _OFF_DB
    cut_voiced_s: float = 0.128
    cut_within_s: float = 0.32
    fragment_s: float = 0.1
    residual_gate_db: float = 10.0
    echo_gate_db: float = 10.0
    first_echo_gate_db: float = 8.0
    sure_probability: float = 0.9
    first_heard_s: float = 1.2
    first_margin_db: float = 10.0
    first_cut_over_db: float = 2.0
    first_weight: float = 0.4
    first_within_s: float = 0.5
    leak_margin_db: float = 6.0
    clear_gate_db: float = 18.0
    clear_margin_db: float = 12.0
    clear_after_s: float = 5.0
    loud_duck_probability: float = 0.15
    loud_weight: float = 1.5
    loud_gate_db: float = 12.0
    loud_over_db: float = 2.0
    loud_margin_db: float = 20.0
    warm_up_cut_voiced_s: float = 0.16
    warm_up_gate_db: float = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EarsConfig:
    """All of it. `stream_gap_s`: a longer hole in the microphone's time ends what was going on."""

    echo: EchoConfig = field(default_factory=EchoConfig)
    vad: VadConfig = field(default_factory=VadConfig)
    endpoint: EndpointConfig = field(default_factory=EndpointConfig)
    barge_in: BargeInConfig = field(default_factory=BargeInConfig)
    stream_gap_s: float = 0.25


PATIENCE: Mapping[str, EndpointConfig] = MappingProxyType(
    {
        "quick": EndpointConfig(
            finish_silence_s=0.25,
            answer_silence_s=0.2,
            end_silence_s=0.5,
            hold_silence_s=1.0,
            wait_silence_s=3.0,
            sure_end_chance=0.85,
        ),
        "normal": EndpointConfig(),
        "patient": EndpointConfig(
            finish_silence_s=0.8,
            answer_silence_s=0.4,
            end_silence_s=1.1,
            hold_silence_s=2.2,
            wait_silence_s=8.0,
            decode_wait_s=1.5,
            sure_end_chance=0.98,
        ),
    }
)

SENSITIVITY: Mapping[str, BargeInConfig] = MappingProxyType(
    {
        "relaxed": BargeInConfig(
            duck_probability=0.6,
            voice_weight=0.75,
            quiet_under_db=8.0,
            cut_voiced_s=0.192,
            cut_within_s=0.384,
            warm_up_cut_voiced_s=0.224,
            residual_gate_db=8.0,
            loud_duck_probability=0.3,
            loud_weight=1.2,
        ),
        "normal": BargeInConfig(),
        "eager": BargeInConfig(
            duck_probability=0.25,
            voice_weight=1.8,
            cut_voiced_s=0.1,
            cut_within_s=0.3,
            warm_up_cut_voiced_s=0.128,
            residual_gate_db=12.0,
            first_weight=0.25,
            loud_duck_probability=0.12,
            loud_weight=1.5,
        ),
    }
)


def preset(*, patience: str = "normal", sensitivity: str = "normal", base: EarsConfig | None = None) -> EarsConfig:
    """Return `base` (default: the defaults) with both dials set.

    Raises:
        InputError: for a name that is not a preset.
    """
    if patience not in PATIENCE:
        raise InputError("patience_unknown", f"patience must be one of {', '.join(PATIENCE)}, not {patience!r}")
    if sensitivity not in SENSITIVITY:
        known = ", ".join(SENSITIVITY)
        raise InputError("sensitivity_unknown", f"sensitivity must be one of {known}, not {sensitivity!r}")
    return replace(base or EarsConfig(), endpoint=PATIENCE[patience], barge_in=SENSITIVITY[sensitivity])
