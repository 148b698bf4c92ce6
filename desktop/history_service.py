"""Stored conversations for the window: find, delete, export, correct. Works on a thread of its own.

It opens the store beside the running core: reading never locks it, and a deletion is one short transaction.
"""

from __future__ import annotations

import difflib
import logging
import re
import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from desktop.work_queue import WorkQueue
from orchestrator.contracts.commands import Command, NewSession, SendText
from orchestrator.contracts.errors import MynahError
from orchestrator.contracts.ids import GenerationId

log = logging.getLogger(__name__)

HOTWORDS_FILE = "hotwords.txt"
MOST_HOTWORDS = 20
"""Unrelated words cost the recogniser accuracy, so the list stays short."""

_Row = tuple[int, str, str, str, str, str, int, str | None]

_BUSY_S = 5.0
_SETTLE_S = 0.8
_LOOK_S = 0.02
_NEWEST = "SELECT id FROM sessions ORDER BY started_at DESC, rowid DESC LIMIT 1"
_TOKEN = re.compile(r"[\u3400-\u9fff]|[^\W_]+(?:['\u2019-][^\W_]+)*")
_HAN = re.compile(r"[\u3400-\u9fff]")
_MARKDOWN = re.compile(r"([\\`*_<>\[\]#])")


class WordDoor(Protocol):
    """The recogniser, as the history sees it."""

    def expect_words(self, words: Sequence[str]) -> None:
        """Expect `words` from the next sentence on."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One stored message. `role` is user, assistant or note; `at` is when it was stored, at the end of its sound.

    `is_replaced` marks both sides of a misheard turn that was taken again: they were not said, in a way. `turn` is the
    answer that the line belongs to, None for lines of older versions.
    """

    id: int
    session: str
    role: str
    status: str
    text: str
    at: datetime
    is_replaced: bool = False
    turn: str | None = None

    @property
    def is_cut(self) -> bool:
        """Whether the answer was cut off after this text."""
        return self.status == "interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Lines that hold the query, oldest first; `has_more` if older ones were left out."""

    query: str
    lines: tuple[Line, ...] = ()
    has_more: bool = False
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """How a deletion or an export ended: `count` lines, or the `error` in one line."""

    count: int = 0
    error: str = ""


class HistoryService:
    """Answers by callbacks on its thread."""

    def __init__(self, database: Path, submit: Callable[[Command], bool]) -> None:
        """Use the file `database`, which need not exist yet; commands go to the conversation by `submit`."""
        self._path = database
        self._submit = submit
        self._work = WorkQueue("history")
        self._door: WordDoor | None = None

    def attach(self, door: WordDoor) -> None:
        """Connect the recogniser and give it the words learned before."""
        self._door = door
        words = self.learned()
        if words:
            door.expect_words(words)

    def close(self) -> None:
        """Finish what was begun."""
        self._work.close()

    # --- reading ----------------------------------------------------------------------------------------

    def find(self, query: str, on_done: Callable[[Found], None], limit: int = 500) -> None:
        """Find the newest `limit` lines that hold `query` (all for an empty one), in any letter case."""
        self._work.add(lambda: on_done(self._find(query, limit)))

    def _find(self, query: str, limit: int) -> Found:
        if not self._path.is_file():
            return Found(query=query)
        try:
            rows = self._read(query.strip().casefold(), limit + 1)
        except sqlite3.Error as error:
            return Found(query=query, error=str(error))
        lines = tuple(_line(row) for row in reversed(rows[:limit]))
        return Found(query=query, lines=lines, has_more=len(rows) > limit)

    def _read(self, folded: str, limit: int) -> list[_Row]:
        db = sqlite3.connect(f"{self._path.absolute().as_uri()}?mode=ro", uri=True, timeout=_BUSY_S)
        try:
            # SQLite folds ASCII only; Python's rule holds for every language.
            db.create_function("holds", 1, lambda text: folded in str(text).casefold(), deterministic=True)
            where = "WHERE session_id IN (SELECT id FROM sessions)" + (" AND holds(text)" if folded else "")
            names = {str(column[1]) for column in db.execute("PRAGMA table_info(messages)")}
            # The file of an older version is read before the conversation brings it up to date.
            replaced = "replaced_by IS NOT NULL" if "replaced_by" in names else "0"
            return db.execute(
                f"SELECT id, session_id, role, status, text, at, {replaced}, generation_id FROM messages {where}"
                " ORDER BY id DESC LIMIT ?",
                (limit,),
            ).fetchall()
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):
                return []
            raise
        finally:
            db.close()

    # --- deleting ---------------------------------------------------------------------------------------

    def delete(self, ids: Sequence[int], on_done: Callable[[Done], None]) -> None:
        """Delete lines for good; if one is of the present conversation, a new one begins."""
        self._work.add(lambda: on_done(self._delete(tuple(ids))))

    def delete_all(self, on_done: Callable[[Done], None]) -> None:
        """Delete every line and every learned word for good, and begin a new conversation."""
        self._work.add(lambda: on_done(self._delete(None)))

    def _delete(self, ids: tuple[int, ...] | None) -> Done:
        if not self._path.is_file():
            return Done()
        try:
            if ids is None:
                self._begin_anew()
            count, is_present = self._remove(ids)
            if ids is None:
                self._work.add(self._remove_late)
                (self._path.parent / HOTWORDS_FILE).unlink(missing_ok=True)
                if self._door is not None:
                    self._door.expect_words(())
        except (sqlite3.Error, OSError) as error:
            return Done(error=str(error))
        if is_present and ids is not None:
            # The running conversation has the lines in memory: a new one has not.
            self._submit(NewSession())
        return Done(count=count)

    def _begin_anew(self) -> None:
        """Begin a new conversation and wait a little until it has: the old one must not be stored under any more."""
        before = self._newest_session()
        if not self._submit(NewSession()):
            return
        pause = threading.Event()
        for _ in range(round(_SETTLE_S / _LOOK_S)):
            if self._newest_session() != before or pause.wait(_LOOK_S):
                return

    def _newest_session(self) -> str | None:
        db = sqlite3.connect(self._path, timeout=_BUSY_S)
        try:
            row = db.execute(_NEWEST).fetchone()
        finally:
            db.close()
        return str(row[0]) if row is not None else None

    def _remove_late(self) -> None:
        """Remove what an answer that was cut off by a deletion stored after it."""
        threading.Event().wait(_SETTLE_S)
        try:
            db = sqlite3.connect(self._path, timeout=_BUSY_S)
            try:
                db.execute("PRAGMA secure_delete=ON")
                with db:
                    db.execute("DELETE FROM messages WHERE session_id NOT IN (SELECT id FROM sessions)")
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            finally:
                db.close()
        except sqlite3.Error:
            log.warning("late lines of a deleted conversation can't be removed")

    def _remove(self, ids: tuple[int, ...] | None) -> tuple[int, bool]:
        db = sqlite3.connect(self._path, isolation_level=None, timeout=_BUSY_S)
        try:
            # What is deleted is overwritten, too.
            db.execute("PRAGMA secure_delete=ON")
            db.execute("PRAGMA foreign_keys=ON")
            db.execute("BEGIN IMMEDIATE")
            # The running conversation goes on storing under the newest session, so that one's row stays.
            newest = db.execute(_NEWEST).fetchone()
            present = newest[0] if newest is not None else None
            if ids is None:
                count = db.execute("DELETE FROM messages").rowcount
                db.execute("DELETE FROM quarantine")
                db.execute("DELETE FROM sessions WHERE id IS NOT ?", (present,))
                is_present = True
            else:
                marks = ",".join("?" * len(ids))
                hit = db.execute(
                    f"SELECT 1 FROM messages WHERE session_id IS ? AND id IN ({marks})", (present, *ids)
                ).fetchone()
                count = db.execute(f"DELETE FROM messages WHERE id IN ({marks})", ids).rowcount
                is_present = hit is not None
            db.execute("COMMIT")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return count, is_present
        finally:
            db.close()

    # --- exporting --------------------------------------------------------------------------------------

    def export(
        self, path: Path, lines: Sequence[Line], names: Mapping[str, str], on_done: Callable[[Done], None]
    ) -> None:
        """Write `lines` as SRT if the file is called so, else as Markdown. `names` says who speaks by role."""
        text = to_srt(lines, names) if path.suffix.casefold() == ".srt" else to_markdown(lines, names)

        def work() -> None:
            try:
                new = path.with_name(path.name + ".new")
                new.write_text(text, encoding="utf-8")
                new.replace(path)
            except OSError as error:
                on_done(Done(error=f"{path.name}: {error.strerror}"))
                return
            on_done(Done(count=len(lines)))

        self._work.add(work)

    # --- correcting -------------------------------------------------------------------------------------

    def correct(self, line: Line, text: str) -> bool:
        """Ask again with what was really said, and learn the misheard words; False if nobody takes it."""
        return self._ask_again(line.text, text, GenerationId(line.turn) if line.turn is not None else None)

    def correct_text(self, heard: str, text: str) -> bool:
        """Do as `correct` for a line that need not be stored, or that is a part of one."""
        return self._ask_again(heard, text, None)

    def _ask_again(self, heard: str, text: str, turn: GenerationId | None) -> bool:
        said = text.strip()
        if not said or not self._submit(SendText(text=said, corrects=heard, corrects_turn=turn)):
            return False
        self.learn(heard, said)
        return True

    def learn(self, heard: str, said: str) -> None:
        """Let the recogniser expect the words of `said` that were misheard."""
        words = corrected_words(heard, said)
        if words:
            self._work.add(lambda: self._learn(words))

    def learned(self) -> tuple[str, ...]:
        """Return the words learned from corrections, newest first."""
        try:
            text = (self._path.parent / HOTWORDS_FILE).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return ()
        return tuple(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))[:MOST_HOTWORDS]

    def _learn(self, words: Sequence[str]) -> None:
        known = tuple(dict.fromkeys((*words, *self.learned())))[:MOST_HOTWORDS]
        try:
            (self._path.parent / HOTWORDS_FILE).write_text("\n".join(known) + "\n", encoding="utf-8")
        except OSError:
            log.warning("the learned words can't be saved")
        if self._door is not None:
            try:
                self._door.expect_words(known)
            except MynahError as error:
                log.warning("the recogniser takes no words: %s", error.code)


def _line(row: _Row) -> Line:
    number, session, role, status, text, at, replaced, turn = row
    return Line(
        id=number,
        session=session,
        role=role,
        status=status,
        text=text,
        at=datetime.fromisoformat(at),
        is_replaced=bool(replaced),
        turn=turn,
    )


def corrected_words(heard: str, said: str) -> tuple[str, ...]:
    """Return what is in `said` in place of, or beside, what was heard; Chinese characters that touch stay together."""
    before, after = _TOKEN.findall(heard.casefold()), _TOKEN.findall(said)
    matcher = difflib.SequenceMatcher(a=before, b=[token.casefold() for token in after], autojunk=False)
    found: list[str] = []
    for kind, _, _, start, end in matcher.get_opcodes():
        if kind in ("replace", "insert"):
            found.extend(_joined(after[start:end]))
    return tuple(dict.fromkeys(word for word in found if len(word) > 1))[:5]


def _joined(tokens: Sequence[str]) -> list[str]:
    made: list[str] = []
    was_han = False
    for token in tokens:
        is_han = bool(_HAN.fullmatch(token))
        if is_han and was_han:
            made[-1] += token
        else:
            made.append(token)
        was_han = is_han
    return made


def to_markdown(lines: Iterable[Line], names: Mapping[str, str]) -> str:
    """Return `lines` as a readable document, a heading for each day; what was misheard and redone is left out."""
    parts: list[str] = []
    day = None
    for line in lines:
        if line.is_replaced:
            continue
        at = line.at.astimezone()
        if at.date() != day:
            day = at.date()
            parts.append(f"## {day.isoformat()}")
        cut = " …" if line.is_cut else ""
        text = _MARKDOWN.sub(r"\\\1", " ".join(line.text.split()))
        parts.append(f"**{names.get(line.role, line.role)}** ({at:%H:%M}): {text}{cut}")
    return "\n\n".join(parts) + "\n"


def to_srt(lines: Iterable[Line], names: Mapping[str, str]) -> str:
    """Return `lines` as subtitles from zero on. Only ends are stored; the lengths are estimated from the text."""
    cues: list[tuple[timedelta, timedelta, str]] = []
    origin: datetime | None = None
    last_end = timedelta(0)
    for line in lines:
        if line.is_replaced:
            continue
        text = " ".join(line.text.split())
        length = timedelta(seconds=max(1.0, len(_HAN.findall(text)) / 5 + len(_HAN.sub("", text)) / 15))
        origin = origin if origin is not None else line.at - length
        end = max(line.at - origin, last_end + timedelta(seconds=0.5))
        start = max(end - length, last_end)
        last_end = end
        cut = " …" if line.is_cut else ""
        cues.append((start, end, f"{names.get(line.role, line.role)}: {text}{cut}"))
    blocks = [f"{n}\n{_stamp(start)} --> {_stamp(end)}\n{text}" for n, (start, end, text) in enumerate(cues, 1)]
    return "\n\n".join(blocks) + "\n"


def _stamp(at: timedelta) -> str:
    total_ms = round(at.total_seconds() * 1000)
    seconds, ms = divmod(total_ms, 1000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02},{ms:03}"
