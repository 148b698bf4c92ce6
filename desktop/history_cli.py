"""`mynah history`: list, export and delete conversations."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from desktop.paths import DATABASE, data_dir
from desktop.shared_options import add_everywhere
from orchestrator.contracts.errors import InputError
from orchestrator.contracts.ids import SessionId
from orchestrator.store import records
from orchestrator.store.database import Database

_SPEAKER = {"user": "You", "assistant": "Mynah", "note": "Note"}


def history_main(argv: list[str]) -> int:
    """Run the command line `mynah history`."""
    parser = argparse.ArgumentParser(prog="mynah history", description="List, export and delete conversations.")
    commands = parser.add_subparsers(dest="what", required=True)
    listing = commands.add_parser("list", help="list conversations")
    listing.add_argument("--json", action="store_true", help="print JSON")
    export = commands.add_parser("export", help="print conversations")
    export.add_argument("session", nargs="?", help="only this conversation")
    export.add_argument("--format", choices=("markdown", "json"), default="markdown")
    delete = commands.add_parser("delete", help="delete conversations for good")
    delete.add_argument("session", nargs="?", help="only this conversation")
    delete.add_argument("--all", action="store_true", help="all conversations")
    each = (listing, export, delete)
    add_everywhere(parser, each, "--data", type=Path, metavar="DIR", help="folder of settings and history")
    args = parser.parse_args(argv)
    path = data_dir(args.data) / DATABASE
    if not path.is_file():
        if args.what == "list":
            print("[]" if args.json else "no conversations yet")
            return 0
        raise InputError("history_missing", f"there are no conversations in {path.parent}", part="history")
    database = Database(path, is_inline=True)
    try:
        return _carry_out(database, args)
    finally:
        database.close()


def _carry_out(database: Database, args: argparse.Namespace) -> int:
    if args.what == "list":
        sessions = database.transact_now(records.list_sessions)
        if args.json:
            print(json.dumps(sessions, ensure_ascii=False, indent=2))
        else:
            for row in sessions:
                print(f"{row['id']}  {row['started_at'][:19]}  {row['messages']} messages")
        return 0
    session = SessionId(args.session) if args.session else None
    if session is not None and all(row["id"] != session for row in database.transact_now(records.list_sessions)):
        raise InputError(
            "session_unknown", f"there is no conversation {session}; see mynah history list", part="history"
        )
    if args.what == "delete":
        if session is None and not args.all:
            raise InputError("session_missing", "say which conversation, or --all", part="history")
        count = database.transact_now(lambda db: records.delete_messages(db, session))
        print(f"{count} messages deleted")
        return 0
    messages = database.transact_now(lambda db: records.list_messages(db, session))
    if args.format == "json":
        print(json.dumps(messages, ensure_ascii=False, indent=2))
        return 0
    for message in messages:
        cut = " *(interrupted)*" if message["status"] == "interrupted" else ""
        cut += " *(misheard)*" if message["replaced"] else ""
        sys.stdout.write(f"**{_SPEAKER[message['role']]}** ({message['at'][:16]}): {message['text']}{cut}\n\n")
    return 0
