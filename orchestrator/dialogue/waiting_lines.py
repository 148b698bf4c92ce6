"""Inputs that are answered after the answer in progress: lines typed before its first sound, words over a warning."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from orchestrator.bus.bus import Bus
from orchestrator.contracts.events import Event, InputUser
from orchestrator.contracts.ports import ViewSink
from orchestrator.contracts.views import UserTextView
from orchestrator.dialogue.glue import glue
from orchestrator.dialogue.misheard import TYPED
from orchestrator.dialogue.phrase_book import PhraseBook
from orchestrator.dialogue.utterances import Standing, standing_of

_MARK = ":kept"
MAX_WAITING = 64
"""More than anybody types while one answer is made; a program that floods the control channel is held off."""


class WaitingLines:
    """Inputs in the order they came. Lives on the core loop.

    At most `MAX_WAITING`: what comes then is not answered, and counted as `overflow:input:user`; none that waits gives
    way. A stop forgets them, counted as `stopped:input:user`.
    """

    def __init__(self, bus: Bus, views: ViewSink) -> None:
        """Start with none; what is typed is shown in `views`."""
        self._bus = bus
        self._views = views
        self._waiting: deque[tuple[Event, InputUser]] = deque()

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self._waiting)

    def show(self, event: Event, said: InputUser) -> None:
        """Show a typed line, once: when it is answered or begins to wait."""
        if said.via in TYPED and not has_waited(event):
            self._views.show(UserTextView(utterance_id=event.utterance_id, text=said.text, final=True, via=said.via))

    def standing(self, event: Event, said: InputUser, before: str, book: PhraseBook) -> Standing:
        """Return how an input stands to `before`, what the answer in the making is for ("" for none), and to these."""
        if len(self) and said.via in TYPED and not has_waited(event):
            return Standing.AFTER
        return standing_of(said, before, book) if before else Standing.INSTEAD

    def keep(self, event: Event, said: InputUser, book: PhraseBook, key: str) -> None:
        """Let an input wait, joined with the newest one if it goes on with it; `key` names where it came from."""
        self.show(event, said)
        kept = replace(event, source="dialogue", dedupe_key=f"{key}{_MARK}")
        if has_waited(event):
            self._waiting.appendleft((kept, said))
            return
        is_typed = said.via in TYPED
        if is_typed and len(self) and standing_of(said, self._waiting[-1][1].text, book) is Standing.JOINED:
            before, first = self._waiting.pop()
            kept, said = before, replace(first, text=glue(first.text, said.text))
        if len(self) >= MAX_WAITING:
            self._bus.counters["overflow:input:user"] += 1
            return
        self._waiting.append((kept, said))

    def post_next(self) -> bool:
        """Let the oldest one be answered now; False if there is none."""
        if not self._waiting:
            return False
        event, said = self._waiting.popleft()
        self._bus.post(replace(event, payload=said))
        return True

    def forget(self) -> None:
        """Answer none of them: the user wants silence."""
        if self._waiting:
            self._bus.counters["stopped:input:user"] += len(self._waiting)
            self._waiting.clear()


def has_waited(event: Event) -> bool:
    """Whether an input waited before, so that it was shown and judged when it came."""
    return event.dedupe_key is not None and event.dedupe_key.endswith(_MARK)
