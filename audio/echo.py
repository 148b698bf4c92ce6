"""Echo cancellation: what the loudspeaker played is taken out of what the microphone heard."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from livekit import rtc

from audio.ears_config import FRAME_S, FRAME_SAMPLES, RATE_HZ, EchoConfig
from audio.echo_convergence import Convergence, Doubt, Trial
from audio.echo_path import EchoPath, PathObserver, rehearsal
from audio.echo_presence import EchoPresence
from audio.pcm import SILENCE_DB, power, power_db, to_float32, to_int16
from audio.ports import Samples
from orchestrator.contracts.errors import PartFailed

_SMOOTHING_S = 0.05
_ECHO_LEFT_S = 0.5
# Measured at 16 kHz by cross-correlation: the band split delays by 127 samples, noise suppression by 96 more.
_DELAY_S = 127 / RATE_HZ
_NOISE_SUPPRESSION_DELAY_S = 96 / RATE_HZ


@dataclass(frozen=True, slots=True, kw_only=True)
class EchoFrame:
    """One cancelled frame of 10 ms.

    Levels are dBFS, smoothed over 50 ms. `removed_db` is the echo that was taken out (input minus output power),
    `echo_db` how loud it lately was at its loudest; `is_far_active` says that output sounds or its echo may still
    arrive; `is_warm` that the canceller takes it out well; `loss_db` by how much (None until enough was heard);
    `leak_db` how loud the rest usually gets relative to `echo_db`; `heard_s` how much loud echo there was so far;
    `far_db` what sounds at this moment; `is_doubtful` that it was prepared for a room and has not proved right yet.
    """

    samples: Samples
    near_db: float
    clean_db: float
    removed_db: float
    echo_db: float
    is_far_active: bool
    is_warm: bool
    loss_db: float | None = None
    leak_db: float | None = None
    heard_s: float = 0.0
    far_db: float = SILENCE_DB
    is_doubtful: bool = False

    @property
    def residual_db(self) -> float | None:
        """Level of what is left relative to the echo that was taken out; None while no output sounds."""
        return self.clean_db - self.removed_db if self.is_far_active else None

    @property
    def over_echo_db(self) -> float | None:
        """Level of what is left relative to the echo at its loudest of late; None while no output sounds.

        Between the words of the character the echo fades, and what is left of it looks large beside it; beside the
        words it is small.
        """
        return self.clean_db - self.echo_db if self.is_far_active else None


class EchoCanceller(Protocol):
    """Takes frames of exactly 160 samples at 16 kHz. Owned by the ears thread."""

    @property
    def delay_s(self) -> float:
        """How much later the output comes than the input."""
        ...

    def process(self, near: Samples, far: Samples | None) -> EchoFrame:
        """Cancel `far`, what sounded in the same 10 ms (None: nothing), from `near`."""
        ...

    def reset(self) -> None:
        """Forget the room, after a change of device."""
        ...

    @property
    def path(self) -> EchoPath | None:
        """What was learned of devices and room since the last reset; None until it is sure. Any thread."""
        ...

    def rehearse(self, path: EchoPath) -> bool:
        """Begin with what an earlier run learned; False if something sounded already, then it is better known."""
        ...

    def stats(self) -> dict[str, int]:
        """Return counters."""
        ...


class LevelMeters:
    """Smoothed powers of input and output, the echo between them, and how well it is taken out."""

    def __init__(self, config: EchoConfig, delay_s: float, *, is_always_warm: bool = False) -> None:
        """Compare with a canceller's output that comes `delay_s` late."""
        self._config = config
        # Powers of the same moment have to be compared, or every onset looks like removed echo.
        self._near_powers = deque([0.0] * (round(delay_s / FRAME_S) + 1))
        self._is_always_warm = is_always_warm
        self._keep = 1.0 - FRAME_S / _SMOOTHING_S
        self._near = 0.0
        self._clean = 0.0
        self._raw = 0.0
        self._far_left_s = 0.0
        self._echo_db = SILENCE_DB
        self.convergence = Convergence(config)

    def raw_db(self, near: Samples) -> float:
        """Return the level of the input, without the canceller's delay; once per frame."""
        self._raw = self._keep * self._raw + (1.0 - self._keep) * power(near)
        return power_db(self._raw)

    def measure(
        self,
        near: Samples,
        clean: Samples,
        far: Samples | None,
        *,
        floor_db: float | None = None,
        played: Samples | None = None,
    ) -> EchoFrame:
        """Return the frame `clean` with its levels.

        `floor_db` is the room's noise, if it is known; `played` what sounds, also where it is known to leave no echo.
        """
        played = far if played is None else played
        self._far_left_s -= FRAME_S
        if far is not None and power_db(power(far)) >= self._config.far_active_db:
            self._far_left_s = self._config.far_tail_s
        self._near_powers.append(power(near))
        self._near_powers.popleft()
        self._near = self._keep * self._near + (1.0 - self._keep) * self._near_powers[0]
        self._clean = self._keep * self._clean + (1.0 - self._keep) * power(clean)
        near_db, clean_db = power_db(self._near), power_db(self._clean)
        removed_db = power_db(self._near - self._clean)
        is_far_active = self._far_left_s > 0.0
        self._echo_db = max(self._echo_db - self._config.echo_fall_db_per_s * FRAME_S, SILENCE_DB)
        if is_far_active:
            self._echo_db = max(self._echo_db, removed_db)
            self.convergence.frame(near_db, clean_db, self._echo_db, floor_db=floor_db)
        return EchoFrame(
            samples=clean,
            near_db=near_db,
            clean_db=clean_db,
            removed_db=removed_db,
            echo_db=self._echo_db,
            is_far_active=is_far_active,
            is_warm=self._is_always_warm or self.convergence.is_warm,
            loss_db=self.convergence.loss_db,
            leak_db=self.convergence.leak_db,
            heard_s=self.convergence.heard_s,
            far_db=SILENCE_DB if played is None else power_db(power(played)),
        )


class WebRtcEchoCanceller:
    """WebRTC's AEC3. Runs on every frame, so that its delay of about 10 ms never changes; costs 0.15 ms a frame."""

    def __init__(self, config: EchoConfig) -> None:
        """Create the processing module; see `EchoConfig`."""
        self._config = config
        self._frames = 0
        self._far_frames = 0
        self._resets = 0
        self._absent_frames = 0
        self._rehearsals = 0
        self._failed_rehearsals = 0
        self._trial: Trial | None = None
        self._doubtful_frames = 0
        self._silence = np.zeros(FRAME_SAMPLES, np.float32)
        self._observer = PathObserver()
        self._is_fresh = True
        self.reset()
        self._resets = 0

    @property
    def delay_s(self) -> float:
        """How much later the output comes than the input."""
        return _DELAY_S + (_NOISE_SUPPRESSION_DELAY_S if self._config.noise_suppression else 0.0)

    def process(self, near: Samples, far: Samples | None) -> EchoFrame:
        """Cancel `far` from `near`.

        Raises:
            PartFailed: `echo_failed` if the module refuses a frame.
            ValueError: unless both hold exactly 160 samples; the module takes other lengths silently and is wrong.
        """
        if len(near) != FRAME_SAMPLES or (far is not None and len(far) != FRAME_SAMPLES):
            raise ValueError(f"frames must hold {FRAME_SAMPLES} samples")
        self._frames += 1
        self._far_frames += far is not None
        played = far
        if self._is_without_echo(near, far):
            far = None
        frame = self._frame(near)
        try:
            self._apm.process_reverse_stream(self._frame(self._silence if far is None else far))
            if self._config.delay_hint_s is not None:
                self._apm.set_stream_delay_ms(round(self._config.delay_hint_s * 1000))
            self._apm.process_stream(frame)
        except RuntimeError as error:
            message = f"echo cancellation failed: {error}"
            raise PartFailed("echo_failed", message, part="audio", recoverable=True) from error
        clean = to_float32(np.array(frame.data, np.int16))
        self._observer.frame(near, far)
        self._is_fresh = self._is_fresh and (far is None or not far.any())
        measured = self._meters.measure(near, clean, far, floor_db=self._presence.floor_db, played=played)
        if self._trial is not None:
            return self._tried(measured, self._trial)
        self._doubtful_frames = max(0, self._doubtful_frames - 1)
        return replace(measured, is_doubtful=True) if self._doubtful_frames else measured

    def reset(self) -> None:
        """Forget the room and count warm-up anew."""
        self._apm = self._new_module()
        self._trial = None
        self._doubtful_frames = 0
        self._meters = LevelMeters(self._config, self.delay_s)
        self._presence = EchoPresence(self._config)
        self._observer.reset()
        self._is_fresh = True
        self._resets += 1

    @property
    def path(self) -> EchoPath | None:
        """What was learned since the last reset; None until delay, loss and leak are known and the echo is tamed."""
        convergence, delay_s, coupling_db = self._meters.convergence, self._observer.delay_s, self._observer.coupling_db
        loss_db, leak_db = convergence.loss_db, convergence.leak_db
        if delay_s is None or coupling_db is None or loss_db is None or leak_db is None or not convergence.is_warm:
            return None
        return EchoPath(delay_s=delay_s, coupling_db=coupling_db, loss_db=loss_db, leak_db=leak_db)

    def rehearse(self, path: EchoPath) -> bool:
        """Let the module hear what it would hear on `path`; costs 60 ms.

        Whether the room is still the same is told by the first of the real echo. Until then the frames are doubtful; if
        it is another room, the module begins anew, as if nothing had been known.
        """
        if not self._is_fresh:
            return False
        near, far = rehearsal(path)
        for begin in range(0, len(near), FRAME_SAMPLES):
            part = slice(begin, begin + FRAME_SAMPLES)
            self._apm.process_reverse_stream(self._frame(far[part]))
            self._apm.process_stream(self._frame(near[part]))
        self._meters.convergence.expect(path.leak_db)
        self._trial = Trial(self._config.warm_loss_db)
        self._is_fresh = False
        self._rehearsals += 1
        return True

    def stats(self) -> dict[str, int]:
        """Return counters."""
        return {
            "echo_rehearsals": self._rehearsals,
            "echo_rehearsals_wrong": self._failed_rehearsals,
            "echo_frames": self._frames,
            "echo_far_frames": self._far_frames,
            "echo_absent_frames": self._absent_frames,
            "echo_resets": self._resets,
        }

    def _tried(self, frame: EchoFrame, trial: Trial) -> EchoFrame:
        doubt = trial.judge(self._meters.convergence.steps_db)
        if doubt is Doubt.OPEN:
            return replace(frame, is_doubtful=frame.is_far_active)
        self._trial = None
        if doubt is Doubt.NONE:
            return frame
        self._failed_rehearsals += 1
        self._apm = self._new_module()
        self._meters.convergence.reset()
        # What the new module was never told of still comes back for a while.
        self._doubtful_frames = round(_ECHO_LEFT_S / FRAME_S)
        return replace(frame, is_doubtful=True)

    def _new_module(self) -> rtc.AudioProcessingModule:
        return rtc.AudioProcessingModule(
            echo_cancellation=True,
            noise_suppression=self._config.noise_suppression,
            high_pass_filter=self._config.high_pass,
        )

    def _is_without_echo(self, near: Samples, far: Samples | None) -> bool:
        if not self._config.detect_presence:
            return False
        had_echo = self._presence.has_echo
        far_db = SILENCE_DB if far is None else power_db(power(far))
        has_echo = self._presence.frame(self._meters.raw_db(near), far_db)
        if has_echo and not had_echo:
            # The canceller was kept in the dark and has to converge anew.
            self._meters.convergence.reset()
        self._absent_frames += not has_echo
        return not has_echo

    @staticmethod
    def _frame(samples: Samples) -> rtc.AudioFrame:
        return rtc.AudioFrame(bytearray(to_int16(samples).tobytes()), RATE_HZ, 1, FRAME_SAMPLES)


class NoEchoCanceller:
    """Passes the microphone through, for headphones and tests; measures levels all the same."""

    def __init__(self, config: EchoConfig | None = None) -> None:
        """Measure with the levels of `config`."""
        self._config = config or EchoConfig()
        self._frames = 0
        self.reset()

    @property
    def delay_s(self) -> float:
        """Nothing is delayed."""
        return 0.0

    def process(self, near: Samples, far: Samples | None) -> EchoFrame:
        """Return `near` as it is."""
        self._frames += 1
        return self._meters.measure(near, near, far)

    @property
    def path(self) -> EchoPath | None:
        """Nothing is learned."""
        return None

    def rehearse(self, path: EchoPath) -> bool:
        """Nothing can be rehearsed."""
        return False

    def reset(self) -> None:
        """Start the meters anew."""
        self._meters = LevelMeters(self._config, 0.0, is_always_warm=True)

    def stats(self) -> dict[str, int]:
        """Return counters."""
        return {"echo_frames": self._frames, "echo_far_frames": 0, "echo_resets": 0}
