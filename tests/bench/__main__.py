"""The bench: measures the running program, prints a table, writes JSON. See docs/bench.md."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.accuracy import AccuracySection
from bench.attention import AttentionSection
from bench.components import ComponentSection
from bench.live import EchoSection, LiveSection
from bench.long_rows import LongSection
from bench.machine import load, machine, versions
from bench.other_live import RuleSection, WindowSection
from bench.plan import FULL, ONE, QUICK, Section, Setting, Teller
from bench.rows import Row, markdown, table
from bench.spoken_forms import SpokenFormsSection
from bench.stimuli import Recordings
from bench.turn_ends import TurnSection

ROOT = Path(__file__).resolve().parent.parent.parent
SECTIONS: Mapping[str, Callable[[Setting], Section]] = {
    "components": ComponentSection,
    "accuracy": AccuracySection,
    "turns": TurnSection,
    "attention": AttentionSection,
    "spoken": SpokenFormsSection,
    "live": LiveSection,
    "echo": EchoSection,
    "rules": RuleSection,
    "window": WindowSection,
}
LONG = {"long": LongSection}


def main(argv: Sequence[str]) -> int:
    """Run the bench: 0 measured, 1 with --strict and over budget, 2 bad arguments, 3 a part failed, 130 cancelled."""
    args = _parser().parse_args(argv)
    known = {**SECTIONS, **LONG}
    chosen = list(known if args.long else SECTIONS) if args.only is None else args.only.split(",")
    unknown = [name for name in chosen if name not in known]
    if unknown:
        sys.stderr.write(f"bench: no section {unknown[0]}; there are {', '.join(known)}\n")
        return 2
    for out in (args.json, args.markdown):
        if out is not None and not out.parent.is_dir():
            sys.stderr.write(f"bench: there is no folder {out.parent}\n")
            return 2
    plan = ONE if args.one else QUICK if args.quick else FULL
    tell = Teller()
    loads = [load()]
    tell.say(f"load before the start {loads[0][0]:.2f}, {machine()['cores']} cores; lower is better")
    code = 0
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="mynah-bench-", ignore_cleanup_errors=True) as scratch:
        setting = Setting(
            plan=plan, tell=tell, folder=Path(scratch), recordings=_recordings(), seed=args.seed, keep=args.keep
        )
        for name in chosen:
            section: Section = known[name](setting)
            began_s = time.monotonic()
            try:
                section.run()
            except KeyboardInterrupt:
                code = 130
                tell.say("cancelled; this is what was measured so far")
            except Exception as error:
                # Whatever a part fails of, what the others measured is worth printing.
                code = 3
                reason = f"{name} ended early: {type(error).__name__}: {error}"
                tell.failures.append(reason)
                tell.say(reason)
            loads.append(load())
            rows += section.rows()
            tell.say(f"{name} took {time.monotonic() - began_s:.0f} s, load {loads[-1][0]:.2f}")
            if code == 130:
                break
    _publish(rows, loads, args, tell)
    return code or int(args.strict and any(row.verdict == "over" for row in rows))


def _publish(
    rows: Sequence[Row], loads: Sequence[tuple[float, float, float]], args: argparse.Namespace, tell: Teller
) -> None:
    highest = max(one for one, _, _ in loads)
    run: dict[str, Any] = {
        "load_before": loads[0][0],
        "load_highest": highest,
        "scale": "one" if args.one else "quick" if args.quick else "full",
        "seed": args.seed,
        "seconds": round(time.monotonic() - tell.began_s),
        "failures": tell.failures,
    }
    where, packages = machine(), versions()
    sys.stdout.write(table(rows))
    sys.stdout.write(
        f"\n{where['cpu']}, {where['cores']} cores; load before {loads[0][0]:.2f}, highest {highest:.2f} (the program's"
        f" own included); {run['scale']} run, {run['seconds']} s, seed {args.seed}\n"
    )
    over = [row for row in rows if row.verdict == "over"]
    unmeasured = sum(not row.values for row in over)
    sys.stdout.write(f"{len(over) - unmeasured} over budget, {unmeasured} with a budget not measured\n")
    for failure in tell.failures:
        sys.stdout.write(f"no figure: {failure}\n")
    if args.json is not None:
        stored = {"rows": [row.to_json() for row in rows], "machine": where, "versions": packages, "run": run}
        args.json.write_text(json.dumps(stored, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    if args.markdown is not None:
        facts = {**where, **{key: value for key, value in run.items() if key != "failures"}}
        args.markdown.write_text(markdown(rows, facts), encoding="utf-8")


def _recordings() -> Recordings | None:
    folder = Path(os.environ.get("MYNAH_SPEECH") or ROOT.parent / "shared" / "speech")
    return Recordings(folder=folder) if (folder / "manifest.jsonl").is_file() else None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="script/bench", description="Measure the running program against its budgets."
    )
    parser.add_argument("--json", type=Path, metavar="F", help="write the rows, machine and versions into F")
    parser.add_argument("--markdown", type=Path, metavar="F", help="write the rows as a Markdown table into F")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="few trials, about four minutes")
    size.add_argument("--one", action="store_true", help="one trial of each kind: does the bench itself work?")
    parser.add_argument("--long", action="store_true", help="also half an hour of its own voice, in virtual time")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a budget is exceeded or not measured")
    parser.add_argument("--only", metavar="NAMES", help=f"sections, comma-separated: {', '.join([*SECTIONS, *LONG])}")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of synthetic sounds and moments")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the recordings of every trial in DIR")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
