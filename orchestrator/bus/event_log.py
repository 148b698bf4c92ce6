"""The events file: one JSON object a line, written by a thread of its own so that nobody waits for the disk."""

from __future__ import annotations

import dataclasses
import json
import logging
import queue
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TextIO

from orchestrator.bus.envelope import Envelope
from orchestrator.clock import Clock
from orchestrator.contracts.errors import InputError
from orchestrator.contracts.events import Event, Payload, json_name, to_json

log = logging.getLogger(__name__)

Record = dict[str, Any]
Tap = Callable[[Record], None]

_ID_FIELDS = (
    ("session_id", "sessionId"),
    ("utterance_id", "utteranceId"),
    ("generation_id", "generationId"),
    ("target_generation_id", "targetGenerationId"),
    ("intent_id", "intentId"),
    ("correlation_id", "correlationId"),
)
_HIDDEN = frozenset({("output:first_sound", "words"), ("output:first_sound", "visemes")})


class EventLog:
    """Numbers and writes records. `record` is callable from any thread except a device callback.

    Records wait in an unbounded queue only while the disk is slow; the writer flushes after each batch. Taps get every
    record in order, in the thread that recorded it.

    Nothing that is recorded ends the log: a field that can't be written becomes None, a batch the disk refuses is
    lost, a tap that raises is passed over. Each is counted in `failures`, and `on_failure` hears of the first of each
    kind (`field`, `disk`, `tap`), in the thread it happened in.
    """

    def __init__(self, clock: Clock, path: Path | None, *, with_text: bool = True, is_threaded: bool = True) -> None:
        """Open `path` for writing (None: only taps). Raises `InputError` events_unwritable."""
        self._clock = clock
        self._with_text = with_text
        self._lock = threading.Lock()
        self._seq = 0
        self._taps: list[Tap] = []
        self.failures: Counter[str] = Counter()
        self.on_failure: Callable[[str, Exception], None] | None = None
        self._untold: list[tuple[str, Exception]] = []
        self._file: TextIO | None = None
        self._queue: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        if path is not None:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                # What is no text in UTF-8 becomes a JSON escape, which every reader of JSON takes.
                self._file = path.open("w", encoding="utf-8", errors="backslashreplace")
            except OSError as error:
                raise InputError(
                    "events_unwritable", f"cannot write the events file {path}: {error.strerror}", part="events"
                ) from error
        if self._file is not None and is_threaded:
            self._thread = threading.Thread(target=self._write_loop, name="event-log", daemon=True)
            self._thread.start()

    def add_tap(self, tap: Tap) -> None:
        """Call `tap` with every record from now on."""
        self._taps.append(tap)

    def record_envelope(self, envelope: Envelope) -> None:
        """Write an event with its place on the bus."""
        self._record(
            envelope.event,
            {
                "lane": envelope.lane.value,
                "priorityClass": envelope.priority_class.name.lower(),
                "priorityScore": envelope.priority_score,
                "policyReason": envelope.policy_reason,
            },
        )

    def record(self, event: Event) -> None:
        """Write an event that does not travel on the bus."""
        self._record(event, {})

    def close(self, timeout_s: float = 2.0) -> None:
        """Write what waits and close the file."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(timeout_s)
            self._thread = None
        if self._file is not None:
            try:
                self._file.close()
            except OSError as error:
                self._note_failure("disk", error)
            self._file = None
        self._tell_failures()

    def _record(self, event: Event, place: Mapping[str, Any]) -> None:
        with self._lock:
            self._seq += 1
            record: Record = {
                "t": round(self._clock.monotonic_s(), 6),
                "seq": self._seq,
                "type": event.payload.TYPE,
                "source": event.source,
            }
            for field, name in _ID_FIELDS:
                value = getattr(event, field)
                if value is not None:
                    record[name] = value
            record.update(place)
            record["payload"], line = self._written(record, event.payload)
            for tap in self._taps:
                try:
                    tap(record)
                except Exception as error:
                    self._note_failure("tap", error)
            if self._file is not None and self._thread is not None:
                self._queue.put(line)
            elif self._file is not None:
                self._write(line)
        self._tell_failures()

    def _written(self, record: Record, payload: Payload) -> tuple[dict[str, Any], str]:
        """Return the payload as plain values and the line of the file; whatever is in it."""
        found: dict[str, Any] = {}
        for field in dataclasses.fields(payload):
            if (payload.TYPE, field.name) in _HIDDEN:
                continue
            try:
                found[json_name(field.name)] = self._plain(payload, field.name)
            except Exception as error:
                self._note_failure("field", error)
                found[json_name(field.name)] = None
        try:
            return found, _dump({**record, "payload": found})
        except Exception as error:
            self._note_failure("field", error)
        for name, value in found.items():
            try:
                _dump(value)
            except Exception:
                found[name] = None
        return found, _dump({**record, "payload": found})

    def _plain(self, payload: Payload, name: str) -> Any:
        value = getattr(payload, name)
        if not self._with_text and name in payload.TEXT_FIELDS:
            value = "" if isinstance(value, str) else None
        plain = to_json(value)
        return round(plain, 6) if isinstance(plain, float) else plain

    def _write(self, text: str) -> None:
        if self._file is None:
            return
        try:
            self._file.write(text)
            if self._thread is not None:
                self._file.flush()
        except Exception as error:
            self._note_failure("disk", error)

    def _write_loop(self) -> None:
        is_open = True
        while is_open:
            lines = [self._queue.get()]
            while not self._queue.empty():
                lines.append(self._queue.get())
            if None in lines:
                is_open = False
            text = "".join(line for line in lines if line is not None)
            if text:
                self._write(text)
                self._tell_failures()

    def _note_failure(self, kind: str, error: Exception) -> None:
        self.failures[kind] += 1
        if self.failures[kind] == 1:
            self._untold.append((kind, error))

    def _tell_failures(self) -> None:
        """Report outside the lock: who hears of it may record it."""
        while self._untold:
            kind, error = self._untold.pop(0)
            log.error("events file: %s failed (%s)", kind, type(error).__name__)
            if self.on_failure is not None:
                self.on_failure(kind, error)


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"
