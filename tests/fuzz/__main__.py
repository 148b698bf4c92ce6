"""`script/fuzz`: odd input for everything that takes input from outside; see `--help`."""

from __future__ import annotations

import argparse
import logging
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fuzz.targets import Target, targets

LIMIT_S = 10.0
MAX_FAULTS = 5
# How often an input begins as two sound ones, one behind the other.
JOINED = 0.2
MAX_SEEDS = 8


class TooLong(BaseException):
    """A target has not come back in time; no handler of the product may swallow it."""


@dataclass(slots=True)
class Result:
    """What the rounds of one target came to. `faults`: the input and what happened, each place once."""

    rounds: int = 0
    words: Counter[str] = field(default_factory=Counter)
    faults: dict[str, tuple[bytes, str]] = field(default_factory=dict)


def main(argv: Sequence[str]) -> int:
    """Return 0: nothing found, 1: faults, 2: bad arguments, 130: cancelled."""
    args = _parser().parse_args(argv)
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    # what odd input makes the product log is no finding; whoever calls this logs on afterwards
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        return _run(args)
    finally:
        logging.disable(before)


def _run(args: argparse.Namespace) -> int:
    known = {target.name: target for target in targets()}
    if args.again is not None:
        return _again(args.again, known)
    names = list(known) if args.only is None else args.only.split(",")
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.stderr.write(f"fuzz: no target {unknown[0]}; there are {', '.join(known)}\n")
        return 2
    keep = args.keep or Path(tempfile.mkdtemp(prefix="mynah-fuzz-found-"))
    code = 0
    tell = sys.stdout.write
    try:
        for name in names:
            until_s = time.monotonic() + args.seconds / len(names)
            result = fuzz(known[name], args.seed, lambda n, end_s=until_s: time.monotonic() < end_s)
            tell(f"{name}: {result.rounds} rounds; {_shown(result.words)}\n")
            for data, trace in result.faults.values():
                code = 1
                tell(f"  FAULT {_kept(keep, name, data)}\n  {trace.strip().splitlines()[-1]}\n")
            sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    return code


def fuzz(target: Target, seed: int, goes_on: Callable[[int], bool], limit_s: float = LIMIT_S) -> Result:
    """Give `target` its seeds, then changed ones while `goes_on(rounds)`; the same seed makes the same inputs."""
    result = Result()
    seeds = iter(target.seeds[:MAX_SEEDS])
    rng = random.Random(f"{target.name} {seed}")
    while len(result.faults) < MAX_FAULTS:
        data = next(seeds, None)
        if data is None:
            if not goes_on(result.rounds):
                break
            data = rng.choice(target.seeds)
            if target.is_joined and rng.random() < JOINED:
                data += rng.choice(target.seeds)
            for _ in range(rng.choice((1, 1, 1, 2, 3))):
                data = rng.choice(target.mutations)(rng, data)
        result.rounds += 1
        fault = attempt(target, data, result.words, limit_s)
        if fault is not None:
            result.faults.setdefault(fault[0], (data, fault[1]))
    return result


def attempt(target: Target, data: bytes, words: Counter[str], limit_s: float = LIMIT_S) -> tuple[str, str] | None:
    """Run one input; returns None, or the place of the fault and its traceback."""
    try:
        with _at_most(limit_s):
            words[target.run(data)] += 1
    except (Exception, TooLong) as error:
        places = traceback.extract_tb(error.__traceback__)
        place = next((p for p in reversed(places) if "fuzz" not in Path(p.filename).parts), places[-1])
        return f"{type(error).__name__} {place.filename}:{place.lineno}", traceback.format_exc()
    return None


@contextmanager
def _at_most(limit_s: float) -> Iterator[None]:
    if not hasattr(signal, "setitimer"):
        yield
        return

    def ring(*_: object) -> None:
        raise TooLong(f"not back after {limit_s:g} s")

    former = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)


def _again(path: Path, known: dict[str, Target]) -> int:
    name = path.name.split("~")[0]
    if name not in known or not path.is_file():
        sys.stderr.write(f"fuzz: {path} is no file that script/fuzz has kept\n")
        return 2
    words: Counter[str] = Counter()
    fault = attempt(known[name], path.read_bytes(), words)
    sys.stdout.write(fault[1] if fault is not None else f"no fault: {_shown(words)}\n")
    return 0 if fault is None else 1


def _kept(folder: Path, name: str, data: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name.replace('/', '-')}~{len(list(folder.iterdir()))}"
    path.write_bytes(data)
    return path


def _shown(words: Counter[str]) -> str:
    return ", ".join(f"{word} {count}" for word, count in words.most_common(6))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fuzz", description="Give odd input to all that takes input from outside; nothing may raise or hang."
    )
    parser.add_argument("--seconds", type=float, default=120.0, help="how long in all (default 120)")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other inputs (default 1)")
    parser.add_argument("--only", metavar="NAMES", help="some targets, by comma")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="where inputs with a fault are kept")
    parser.add_argument("--again", type=Path, metavar="FILE", help="run a kept input once more and print its traceback")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
