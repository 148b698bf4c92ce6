"""Doors between the parts of the audio side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from orchestrator.contracts.ids import GenerationId, IntentId, UtteranceId

Samples = NDArray[np.float32]
"""Mono samples, float32 in [-1, 1]; the rate stands where the array is taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audible:
    """What sounds right now, as the ears need it.

    `recent_text` is what was said in the last ten seconds (for telling echo from words); `since_s` is when the
    present stretch of sound began (monotonic).
    """

    generation_id: GenerationId
    intent_id: IntentId
    interruptible: bool
    since_s: float
    recent_text: str


class PlayerControls(Protocol):
    """What the ears may do to the loudspeaker, from their own thread, without waiting."""

    def audible(self) -> Audible | None:
        """Return what sounds or is about to in the device buffer; None in silence, when held or muted."""
        ...

    def recent_text(self, within_s: float) -> str:
        """Return the text that sounded in the last `within_s` seconds, also when nothing sounds now."""
        ...

    def duck(self, *, gain_db: float, ramp_s: float) -> None:
        """Lower the voice to `gain_db` (≤ −12) from the next block on; posts `output:duck`."""
        ...

    def unduck(self, *, ramp_s: float) -> None:
        """Bring the voice back to full level; posts `output:unduck`."""
        ...

    def cut(self) -> GenerationId | None:
        """Fade out within one block and hold what is unplayed; posts `output:cut`. Returns the held generation."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Recognition:
    """Audio to be recognised.

    `audio` is 16 kHz, echo-cancelled, with about 250 ms of lead before the onset; `vad_fraction` the share of windows
    of the voiced span that the second VAD called speech; `via` is voice, or ptt when the VADs had no say (then a low
    `vad_fraction` is no reason to reject). `revision` rises by one with every final of an utterance; partials carry
    the number that the next final will have.
    """

    utterance_id: UtteranceId
    audio: Samples
    final: bool
    vad_fraction: float
    during_output: bool
    revision: int
    via: str = "voice"


class RecogniserPort(Protocol):
    """The recogniser's mailbox. Never blocks; callable from the ears thread.

    Who may post what, so that each utterance gets exactly one final transcript:

    - The ears submit a final *early*, 0.1 s after the voiced sound has ended, while the end-of-turn timer still runs.
      The recogniser decodes it at once and tells it provisionally (`final` false, `provisional` true), so that an
      answer can be begun; as the final one it is posted only after its `release`.
    - The user goes on: the ears `withdraw` the utterance and later submit a new final with a higher `revision`.
    - The turn is over: the ears `release` the utterance with the revision that covers it. The recogniser posts that
      result as the one `input:transcript` with `final` true: at once when it is decoded, else when it is.
    - A released utterance is always answered, also when decoding failed, timed out or the revision is unknown (dropped,
      stopped): then with empty text and `rejected` set. After its release an utterance is neither withdrawn nor
      submitted again.
    - Partials are posted as they come (`final` false), but never after `withdraw` for audio submitted before it, nor
      after the release.

    So for the orchestrator a final transcript is *the* final one; it acts when it has both that and `input:turn_end`,
    which come in either order.
    """

    def submit(self, job: Recognition) -> bool:
        """Queue `job`; a partial is refused (False) while the recogniser is busy, a final never is.

        A final replaces a queued partial, and an older final of the same utterance.
        """
        ...

    def withdraw(self, utterance_id: UtteranceId) -> None:
        """Forget queued work of `utterance_id` and drop the result of what is running for it."""
        ...

    def release(self, utterance_id: UtteranceId, revision: int) -> None:
        """Let the final of `utterance_id` with this `revision` be posted as soon as it is decoded. Called once."""
        ...
