"""Makes the vectors that ship with the program: `python -m orchestrator.rails.seed FOLDER OUT.npz`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from orchestrator.flows.source import MapNode, read_source
from orchestrator.rails.background import shipped
from orchestrator.rails.embedder import LocalEmbedder
from orchestrator.rails.index import VectorStore


def seed_texts(folder: Path) -> list[str]:
    """Return every sentence of the folder's files that is searched by meaning, and the small talk."""
    found: list[str] = [*shipped().ordinary, *shipped().rivals]
    for path in sorted(folder.glob("*.yml")):
        root = read_source(path).root
        if not isinstance(root, MapNode):
            continue
        data = root.plain()
        for texts in (data.get("user_intents") or {}).values():
            found += [texts] if isinstance(texts, str) else [str(text) for text in texts or ()]
        for flow in (data.get("flows") or {}).values():
            examples = flow.get("examples") if isinstance(flow, dict) else None
            found += [str(text) for text in examples or ()]
    return list(dict.fromkeys(found))


def main(arguments: Sequence[str]) -> int:
    """Write the file."""
    if len(arguments) != 2:
        sys.stderr.write("usage: FOLDER OUT.npz\n")
        return 2
    folder, out = map(Path, arguments)
    asyncio.run(VectorStore(LocalEmbedder()).write_seed(out, seed_texts(folder)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
