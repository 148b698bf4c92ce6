"""Where blocks are in the column, and the report of what of them is on the screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from desktop.bridge import Bridge
from desktop.ui.subtitles.layout import BlockLayout
from desktop.ui.subtitles.model import Block
from orchestrator.contracts.events import SubtitlePainted
from orchestrator.contracts.ids import IntentId


@dataclass(slots=True)
class Placed:
    """A block at `y` of the column; `extra` is the height of a line of its own for the sign of a cut."""

    block: Block
    layout: BlockLayout
    starts: list[int]
    y: float
    extra: float = 0.0


class PaintedReport:
    """Tells the bridge what is now on the screen, one event for each line that changed."""

    def __init__(self, bridge: Bridge) -> None:
        """Start with nothing told."""
        self._bridge = bridge
        self._reported: dict[object, SubtitlePainted] = {}

    def tell(self, placed: Sequence[Placed], bottom: float) -> None:
        """Report `placed`; a sentence that begins below `bottom` is not in sight yet."""
        known: dict[object, SubtitlePainted] = {}
        for item in placed:
            block = item.block
            if block.role == "user":
                painted = SubtitlePainted(role="user", text=block.text, lit_to=len(block.text), cut_at=None)
                self._tell_one(known, id(block), painted, block, None)
            for start, s in zip(item.starts, block.sentences, strict=True):
                top = item.y + item.layout.bottom_of(start) - item.layout.line_height
                key = (block.generation_id, s.intent_id)
                if top >= bottom and key not in self._reported:
                    continue
                painted = SubtitlePainted(role="character", text=s.text, lit_to=s.lit_to, cut_at=s.cut_at)
                self._tell_one(known, key, painted, block, s.intent_id)
        self._reported = known

    def _tell_one(
        self,
        known: dict[object, SubtitlePainted],
        key: object,
        painted: SubtitlePainted,
        block: Block,
        intent_id: IntentId | None,
    ) -> None:
        known[key] = painted
        if self._reported.get(key) != painted:
            self._bridge.report_painted(
                painted, utterance_id=block.utterance_id, generation_id=block.generation_id, intent_id=intent_id
            )
