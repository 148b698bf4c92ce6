"""Which mouth shape sounds at a moment; pure, on the monotonic clock."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.contracts.events import TimedViseme
from orchestrator.contracts.ids import GenerationId, IntentId
from orchestrator.contracts.views import SpeechTimelineView

CLOSED = "rest"
"""The shape of silence."""

BLEND_S = 0.05
"""A change of shape is drawn over this long, centred on the change: the picture is never off by more than half."""

_KEPT = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Mouth:
    """The mouth at a moment: shape by name, opening 0 to 1, width around 1."""

    shape: str = CLOSED
    opening: float = 0.0
    width: float = 1.0


CLOSED_MOUTH = Mouth()

_FLAP_S = 0.16
_FLAPS = ("ae", "ih")


def _flaps(view: SpeechTimelineView) -> tuple[TimedViseme, ...]:
    """Return a mouth that opens and half closes during the words, for a voice that tells no more than them."""
    made: list[TimedViseme] = []
    for word in view.words:
        at_s, step = word.start_s, 0
        while at_s < word.end_s:
            made.append(TimedViseme(shape=_FLAPS[step % 2], start_s=at_s))
            at_s, step = at_s + _FLAP_S, step + 1
        made.append(TimedViseme(shape=CLOSED, start_s=word.end_s))
    return tuple(sorted(made, key=lambda viseme: viseme.start_s))


@dataclass(slots=True)
class _Timeline:
    intent_id: IntentId
    generation_id: GenerationId
    origin_s: float
    begins_s: float
    ends_s: float
    starts: tuple[float, ...]
    shapes: tuple[str, ...]


class LipSync:
    """Holds the few sentences that sound now or next; a silent moment is always a closed mouth."""

    def __init__(self, shapes: Mapping[str, tuple[float, float]]) -> None:
        """Draw the mouth by `shapes`: name → (opening, width). An unknown name is half open."""
        self._shapes = shapes
        self._timelines: list[_Timeline] = []

    def set_shapes(self, shapes: Mapping[str, tuple[float, float]]) -> None:
        """Draw the mouth by other shapes from now on."""
        self._shapes = shapes

    def start(self, view: SpeechTimelineView) -> None:
        """Follow a sentence; the same intent again (a resume) replaces its earlier timeline."""
        origin_s = view.at_s - view.start_offset_s
        visemes = view.visemes or _flaps(view)
        timeline = _Timeline(
            intent_id=view.intent_id,
            generation_id=view.generation_id,
            origin_s=origin_s,
            begins_s=view.at_s,
            ends_s=origin_s + view.duration_s,
            starts=tuple(v.start_s for v in visemes),
            shapes=tuple(v.shape for v in visemes),
        )
        kept = [t for t in self._timelines if t.intent_id != view.intent_id]
        self._timelines = [*kept, timeline][-_KEPT:]

    def take(self, other: LipSync) -> None:
        """Follow what `other` follows."""
        self._timelines = list(other._timelines)

    def stop(self, intent_id: IntentId, at_s: float) -> None:
        """Close the mouth of a sentence at `at_s`."""
        for timeline in self._timelines:
            if timeline.intent_id == intent_id:
                timeline.ends_s = min(timeline.ends_s, at_s)

    def forget(self, generation_id: GenerationId) -> None:
        """Drop every sentence of an answer."""
        self._timelines = [t for t in self._timelines if t.generation_id != generation_id]

    def hush(self) -> None:
        """Drop everything."""
        self._timelines.clear()

    def sounding(self, now_s: float) -> GenerationId | None:
        """Return the answer that sounds at `now_s`, none in silence."""
        timeline = self._at(now_s)
        return timeline.generation_id if timeline is not None else None

    def is_busy(self, now_s: float) -> bool:
        """Whether something sounds or will sound."""
        return any(t.ends_s > now_s for t in self._timelines)

    def mouth(self, now_s: float) -> Mouth:
        """Return the mouth at `now_s`."""
        timeline = self._at(now_s)
        if timeline is None or not timeline.starts:
            return CLOSED_MOUTH
        at_s = now_s - timeline.origin_s
        index = bisect_right(timeline.starts, at_s) - 1
        shape = timeline.shapes[index] if index >= 0 else CLOSED
        opening, width = self._drawn(shape)
        half_s = BLEND_S / 2
        into_s = at_s - timeline.starts[index] if index >= 0 else half_s
        left_s = timeline.starts[index + 1] - at_s if index + 1 < len(timeline.starts) else half_s
        if index > 0 and into_s < half_s:
            opening, width = self._mixed(timeline.shapes[index - 1], shape, 0.5 + into_s / BLEND_S)
        elif left_s < half_s:
            opening, width = self._mixed(shape, timeline.shapes[index + 1], 0.5 - left_s / BLEND_S)
        return Mouth(shape=shape, opening=opening, width=width)

    def _drawn(self, shape: str) -> tuple[float, float]:
        return (0.0, 1.0) if shape == CLOSED else self._shapes.get(shape, (0.5, 1.0))

    def _mixed(self, before: str, after: str, share: float) -> tuple[float, float]:
        one, other = self._drawn(before), self._drawn(after)
        return one[0] + (other[0] - one[0]) * share, one[1] + (other[1] - one[1]) * share

    def _at(self, now_s: float) -> _Timeline | None:
        for timeline in reversed(self._timelines):
            if timeline.begins_s <= now_s < timeline.ends_s:
                return timeline
        return None
