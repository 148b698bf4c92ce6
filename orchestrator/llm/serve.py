"""The offline language model as a program of its own: an OpenAI-compatible server on loopback.

`python -m orchestrator.llm.serve --model FILE` prints one JSON line with its port on stdout when it answers. The API
key comes in the variable `MYNAH_LLM_KEY`, never on the command line. It ends when its standard input is closed or
its parent is gone. Imports nothing of Mynah, so that a crash of the native code stays in here.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
import time

KEY_VARIABLE = "MYNAH_LLM_KEY"
ALIAS = "local"
_PARENT_POLL_S = 1.0
_NICENESS = 5
_PROMPT_CACHE_MIB = 64
_SLOTS = 2


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="orchestrator.llm.serve")
    parser.add_argument("--model", required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2, help="for prompts; half of them generate")
    parser.add_argument("--ctx", type=int, default=4096)
    parser.add_argument("--parent", type=int, default=0)
    return parser.parse_args(argv)


def _watch_parent(parent: int) -> None:
    """End the process when standard input ends or the parent changes; the two threads are daemons."""

    def on_stdin() -> None:
        while os.read(0, 4096):
            pass
        os._exit(0)

    def on_parent() -> None:
        while os.getppid() == parent:
            time.sleep(_PARENT_POLL_S)
        os._exit(0)

    threading.Thread(target=on_stdin, name="stdin-watch", daemon=True).start()
    if parent and hasattr(os, "fork"):
        threading.Thread(target=on_parent, name="parent-watch", daemon=True).start()


def main(argv: list[str] | None = None) -> int:
    """Load the model, announce the port and serve until the parent is gone."""
    args = _arguments(argv)
    # Ctrl-C in a terminal goes to the whole group; the parent decides when this process ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    key = os.environ.pop(KEY_VARIABLE, "")
    if not key:
        sys.stderr.write(f"{KEY_VARIABLE} is not set\n")
        return 2
    # The native code may print; stdout belongs to the one announcement.
    announce = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    _watch_parent(args.parent)

    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = args.model
    params.model_alias = {ALIAS}
    params.port = args.port
    params.api_keys = [key]
    params.n_parallel = _SLOTS
    # One context shared by the slots: each may use all of it, and the memory is paid once.
    params.n_ctx = args.ctx
    params.kv_unified = True
    params.cache_ram_mib = _PROMPT_CACHE_MIB
    # The threads of one token wait for each other. Where synthesiser and recogniser want the cores, too, half of them
    # generate five times faster than all; prompts still gain. Without polling, waiting takes nobody's time.
    params.cpuparams.n_threads = max(1, args.threads // 2)
    params.cpuparams_batch.n_threads = args.threads
    params.cpuparams.poll = 0
    params.cpuparams_batch.poll = 0
    params.n_threads_http = 4
    params.ui = False
    params.offline = True
    try:
        server = xllamacpp.Server(params)
    except Exception as error:  # whatever the native code raises ends this process, and only this one
        sys.stderr.write(f"the model can't be loaded: {error}\n")
        return 3
    address = server.listening_address
    announce.write(json.dumps({"port": int(address.rsplit(":", 1)[1]), "pid": os.getpid()}) + "\n")
    announce.close()
    threading.Event().wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
