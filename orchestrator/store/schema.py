"""Tables and migrations. A migration is added at the end of the list, never changed."""

from __future__ import annotations

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE sessions (
        id TEXT PRIMARY KEY,
        started_at TEXT NOT NULL,
        ended_at TEXT
    );
    CREATE TABLE messages (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        session_id TEXT NOT NULL,
        generation_id TEXT,
        utterance_id TEXT,
        role TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'note')),
        status TEXT NOT NULL CHECK (status IN ('completed', 'interrupted', 'failed')),
        text TEXT NOT NULL,
        unheard TEXT NOT NULL DEFAULT '',
        object TEXT,
        at TEXT NOT NULL
    );
    CREATE INDEX messages_by_session ON messages (session_id, id);
    CREATE TABLE dialogue_state (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        version INTEGER NOT NULL,
        state TEXT NOT NULL
    );
    CREATE TABLE effects (
        key TEXT PRIMARY KEY,
        name TEXT NOT NULL,
        args TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('started', 'done', 'failed')),
        result TEXT,
        at TEXT NOT NULL
    );
    CREATE TABLE quarantine (
        correlation_id TEXT PRIMARY KEY,
        generation_id TEXT NOT NULL,
        name TEXT NOT NULL,
        result TEXT,
        at TEXT NOT NULL
    );
    CREATE TABLE reminders (
        id TEXT PRIMARY KEY,
        text TEXT NOT NULL,
        due TEXT NOT NULL,
        due_s REAL NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('waiting', 'fired', 'cancelled')),
        effect_key TEXT UNIQUE
    );
    CREATE INDEX reminders_by_due ON reminders (state, due_s);
    CREATE TABLE facts (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        text TEXT NOT NULL UNIQUE,
        at TEXT NOT NULL
    );
    """,
    # The answer that took the place of a misheard turn; NULL for what counts.
    "ALTER TABLE messages ADD COLUMN replaced_by TEXT;",
)
