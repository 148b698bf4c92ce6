"""What is stored and how it is read back: messages, dialogue state, effects, reminders, facts.

All functions take an open connection and belong inside `Database.transact`.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from orchestrator.contracts.dialogue import HistoryEntry, Reminder
from orchestrator.contracts.events import ObjectRef, to_json
from orchestrator.contracts.ids import CorrelationId, GenerationId, SessionId, UtteranceId


def _dump(value: Any) -> str:
    return json.dumps(to_json(value), ensure_ascii=False)


def add_session(db: sqlite3.Connection, session_id: SessionId, at: datetime) -> None:
    """Store the beginning of a session."""
    db.execute("INSERT OR IGNORE INTO sessions (id, started_at) VALUES (?, ?)", (session_id, at.isoformat()))


def add_message(
    db: sqlite3.Connection,
    *,
    session_id: SessionId,
    generation_id: GenerationId | None,
    utterance_id: UtteranceId | None,
    entry: HistoryEntry,
    at: datetime,
) -> int:
    """Store one message and return its number."""
    cursor = db.execute(
        "INSERT INTO messages (session_id, generation_id, utterance_id, role, status, text, unheard, object, at)"
        " VALUES (?,?,?,?,?,?,?,?,?)",
        (
            session_id,
            generation_id,
            utterance_id,
            entry.role,
            entry.status,
            entry.text,
            entry.unheard,
            _dump(entry.object) if entry.object is not None else None,
            at.isoformat(),
        ),
    )
    return int(cursor.lastrowid or 0)


def _entry(row: Sequence[Any]) -> HistoryEntry:
    role, text, status, unheard, stored = row
    thing = ObjectRef(**json.loads(stored)) if stored else None
    return HistoryEntry(role=role, text=text, status=status, unheard=unheard, object=thing)


def recent_messages(db: sqlite3.Connection, *, limit: int, session_id: SessionId | None = None) -> list[HistoryEntry]:
    """Return the newest `limit` messages that count, oldest first; of one session if given."""
    where, values = ("AND session_id = ?", (session_id,)) if session_id is not None else ("", ())
    rows = db.execute(
        "SELECT role, text, status, unheard, object FROM messages"
        f" WHERE replaced_by IS NULL {where} ORDER BY id DESC LIMIT ?",
        (*values, limit),
    ).fetchall()
    return [_entry(row) for row in reversed(rows)]


def list_messages(db: sqlite3.Connection, session_id: SessionId | None = None) -> list[dict[str, Any]]:
    """Return stored messages with their times, oldest first; `replaced` marks a misheard turn that was redone."""
    where, values = ("WHERE session_id = ?", (session_id,)) if session_id is not None else ("", ())
    names = ("id", "session", "role", "status", "text", "unheard", "at", "replaced")
    rows = db.execute(
        "SELECT id, session_id, role, status, text, unheard, at, replaced_by IS NOT NULL FROM messages"
        f" {where} ORDER BY id",
        values,
    ).fetchall()
    return [dict(zip(names, (*row[:-1], bool(row[-1])), strict=True)) for row in rows]


def replace_turn(db: sqlite3.Connection, generation_id: GenerationId, *, by: GenerationId) -> int:
    """Mark both sides of a turn as replaced by another; returns how many messages."""
    return db.execute(
        "UPDATE messages SET replaced_by = ? WHERE generation_id = ? AND replaced_by IS NULL", (by, generation_id)
    ).rowcount


def replace_text(db: sqlite3.Connection, row: int, *, text: str, generation_id: GenerationId) -> bool:
    """Let a message read `text` and belong to another answer; False if it is not there."""
    changed = db.execute("UPDATE messages SET text = ?, generation_id = ? WHERE id = ?", (text, generation_id, row))
    return changed.rowcount > 0


def list_sessions(db: sqlite3.Connection) -> list[dict[str, Any]]:
    """Return all sessions with their number of messages, newest first."""
    rows = db.execute(
        "SELECT s.id, s.started_at, COUNT(m.id) FROM sessions s LEFT JOIN messages m ON m.session_id = s.id"
        " GROUP BY s.id ORDER BY s.started_at DESC, s.id DESC"
    ).fetchall()
    return [{"id": sid, "started_at": at, "messages": count} for sid, at, count in rows]


def delete_messages(db: sqlite3.Connection, session_id: SessionId | None = None) -> int:
    """Delete one session's messages, or all; returns how many."""
    if session_id is None:
        count = db.execute("DELETE FROM messages").rowcount
        db.execute("DELETE FROM sessions")
        db.execute("DELETE FROM quarantine")
        return count
    count = db.execute("DELETE FROM messages WHERE session_id = ?", (session_id,)).rowcount
    db.execute("DELETE FROM sessions WHERE id = ?", (session_id,))
    return count


def save_state(db: sqlite3.Connection, state: Mapping[str, Any]) -> int:
    """Store the dialogue state and return its new version."""
    row = db.execute("SELECT version FROM dialogue_state WHERE id = 1").fetchone()
    version = (int(row[0]) if row else 0) + 1
    db.execute(
        "INSERT INTO dialogue_state (id, version, state) VALUES (1, ?, ?)"
        " ON CONFLICT (id) DO UPDATE SET version = excluded.version, state = excluded.state",
        (version, _dump(state)),
    )
    return version


def load_state(db: sqlite3.Connection) -> dict[str, Any] | None:
    """Return the stored dialogue state, None if there is none or it can't be read."""
    row = db.execute("SELECT state FROM dialogue_state WHERE id = 1").fetchone()
    if row is None:
        return None
    try:
        state = json.loads(row[0])
    except ValueError:
        return None
    return state if isinstance(state, dict) else None


def effect_state(db: sqlite3.Connection, key: str) -> tuple[str, Any] | None:
    """Return (`started` | `done` | `failed`, result) of an effect, None if the key is new."""
    row = db.execute("SELECT state, result FROM effects WHERE key = ?", (key,)).fetchone()
    return None if row is None else (row[0], json.loads(row[1]) if row[1] else None)


def start_effect(db: sqlite3.Connection, *, key: str, name: str, args: Mapping[str, Any], at: datetime) -> None:
    """Store that an effect is about to run; a failed one may start again."""
    db.execute(
        "INSERT INTO effects (key, name, args, state, at) VALUES (?,?,?,'started',?)"
        " ON CONFLICT (key) DO UPDATE SET state = 'started', at = excluded.at WHERE effects.state = 'failed'",
        (key, name, _dump(args), at.isoformat()),
    )


def end_effect(db: sqlite3.Connection, *, key: str, ok: bool, result: Any) -> None:
    """Store how an effect ended."""
    db.execute(
        "UPDATE effects SET state = ?, result = ? WHERE key = ?", ("done" if ok else "failed", _dump(result), key)
    )


def quarantine(
    db: sqlite3.Connection,
    *,
    correlation_id: CorrelationId,
    generation_id: GenerationId,
    name: str,
    result: Any,
    at: datetime,
) -> None:
    """Keep a result that came too late."""
    db.execute(
        "INSERT OR IGNORE INTO quarantine (correlation_id, generation_id, name, result, at) VALUES (?,?,?,?,?)",
        (correlation_id, generation_id, name, _dump(result), at.isoformat()),
    )


def add_reminder(db: sqlite3.Connection, reminder: Reminder, *, effect_key: str | None) -> Reminder:
    """Store a reminder; a second one with the same effect key returns the first."""
    if effect_key is not None:
        row = db.execute("SELECT id, text, due, state FROM reminders WHERE effect_key = ?", (effect_key,)).fetchone()
        if row is not None:
            return _reminder(row)
    db.execute(
        "INSERT INTO reminders (id, text, due, due_s, state, effect_key) VALUES (?,?,?,?,?,?)",
        (reminder.id, reminder.text, reminder.due.isoformat(), reminder.due.timestamp(), reminder.state, effect_key),
    )
    return reminder


def _reminder(row: Sequence[Any]) -> Reminder:
    return Reminder(id=row[0], text=row[1], due=datetime.fromisoformat(row[2]), state=row[3])


def waiting_reminders(db: sqlite3.Connection) -> list[Reminder]:
    """Return the waiting reminders, soonest first."""
    rows = db.execute(
        "SELECT id, text, due, state FROM reminders WHERE state = 'waiting' ORDER BY due_s, id"
    ).fetchall()
    return [_reminder(row) for row in rows]


def set_reminder_state(db: sqlite3.Connection, reminder_id: str, state: str) -> bool:
    """Move a waiting reminder to `state`; False if it was not waiting."""
    return (
        db.execute("UPDATE reminders SET state = ? WHERE id = ? AND state = 'waiting'", (state, reminder_id)).rowcount
        > 0
    )


def add_fact(db: sqlite3.Connection, text: str, at: datetime) -> bool:
    """Store a fact worth remembering; False if it is known."""
    return db.execute("INSERT OR IGNORE INTO facts (text, at) VALUES (?, ?)", (text, at.isoformat())).rowcount > 0


def facts(db: sqlite3.Connection, *, limit: int = 50) -> list[str]:
    """Return remembered facts, newest first."""
    return [row[0] for row in db.execute("SELECT text FROM facts ORDER BY id DESC LIMIT ?", (limit,))]
