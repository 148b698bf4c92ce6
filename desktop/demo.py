"""`mynah demo`: a scripted conversation with an interruption, in virtual time, with proof of what happened."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from audio.pcm import resample, write_wav
from audio.ports import Samples
from audio.simulated import MIC_RATE_HZ, OUT_RATE_HZ, RoomConfig
from audio.tts.voice import SpeechSynthesiser
from desktop.demo_picture import Mark, draw_timeline
from desktop.models import ModelStore
from desktop.options import add_common_options, run_options
from desktop.simulate import SimulationInput, run_virtual
from desktop.sound_models import load_all
from orchestrator.bus.event_checker import check_records, read_records
from orchestrator.clock import SystemClock
from orchestrator.contracts.dialogue import LlmRequest
from orchestrator.contracts.errors import InputError

_QUESTION = "Can you tell me something about the sea?"
_INTERRUPTION = "Wait, tell me about the mountains."
_ANSWERS = (
    (
        "mountain",
        "Mountains are quiet and old. The air up there is thin and clear.",
    ),
    (
        "sea",
        "The sea covers most of our planet. It is deep, salty and full of life. Whales sing in it, corals build whole "
        "cities, and far below, where no light comes, fish carry little lamps of their own. Every second breath you "
        "take was made by tiny plants that drift in the water.",
    ),
)
_QUESTION_AT_S = 1.0
_INTERRUPTION_AT_S = 7.0
_TRACK_S = 12.0
_USER_PITCH = 1.12
_SILENT_DB = -55.0
_SILENT_WITHIN_S = 0.6


class DemoLlm:
    """A model that knows two answers, with the pace of a real one."""

    is_configured = True
    can_plan = False

    async def stream(self, request: LlmRequest) -> AsyncIterator[str]:
        """Yield the answer that fits the last message, word by word."""
        asked = request.messages[-1].content.casefold()
        text = next(
            (answer for word, answer in _ANSWERS if word in asked), "I like to talk about the sea and the mountains."
        )
        await asyncio.sleep(0.15)
        for word in text.split():
            yield word + " "
            await asyncio.sleep(0.03)

    async def complete(self, request: LlmRequest) -> str:
        """Return the whole answer."""
        return "".join([piece async for piece in self.stream(request)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing the demo shows. `value_s` is none where there is nothing to time."""

    name: str
    value_s: float | None
    is_good: bool


def user_voice(voice: SpeechSynthesiser, text: str) -> Samples:
    """Speak `text` at 16 kHz in a higher voice than the character's."""
    said = voice.synthesise(text, language="en")
    return resample(said.pcm, round(said.rate_hz * _USER_PITCH), MIC_RATE_HZ)


def user_track(voice: SpeechSynthesiser) -> tuple[Samples, float]:
    """Return the user's track and where the interruption's first sample with sound is."""
    track: Samples = np.zeros(int(_TRACK_S * MIC_RATE_HZ), np.float32)
    onset_s = _INTERRUPTION_AT_S
    for at_s, text in ((_QUESTION_AT_S, _QUESTION), (_INTERRUPTION_AT_S, _INTERRUPTION)):
        said = user_voice(voice, text)
        begin = int(at_s * MIC_RATE_HZ)
        track[begin : begin + len(said)] += said
        loud = np.flatnonzero(np.abs(said) > 0.05 * float(np.abs(said).max()))
        onset_s = at_s + float(loud[0]) / MIC_RATE_HZ
    return track, onset_s


def _silence_after(character: Samples, from_s: float) -> float | None:
    """Return how long after `from_s` the last sound of that stretch was; None if it goes on for 1.5 s."""
    frame = OUT_RATE_HZ // 100
    begin = int(from_s * OUT_RATE_HZ)
    window = character[begin : begin + int(1.5 * OUT_RATE_HZ)]
    count = len(window) // frame
    level = 20 * np.log10(np.sqrt(np.mean(np.square(window[: count * frame].reshape(count, frame)), axis=1)) + 1e-9)
    loud = np.flatnonzero(level > _SILENT_DB)
    if len(loud) == 0:
        return 0.0
    last = int(loud[-1])
    return None if last >= count - 2 else (last + 1) / 100


def evaluate(records: Sequence[dict[str, Any]], character: Samples, begin_s: float, onset_s: float) -> list[Finding]:
    """Judge the conversation from its events and the loudspeaker's track."""
    silent_s = _silence_after(character, onset_s)
    onset_at_s = begin_s + onset_s
    verdicts = [r["payload"]["verdict"] for r in records if r["type"] == "interrupt:confirm"]
    sounds = [r for r in records if r["type"] == "output:first_sound"]
    first = sounds[0]["generationId"] if sounds else None
    after = [r for r in sounds if r["payload"]["at_s"] > onset_at_s + 1.0]
    old_later = [r for r in after if r["generationId"] == first]
    new = [r for r in after if r["generationId"] != first]
    ended = {r["generationId"]: r["payload"]["to"] for r in records if r["type"] == "generation:state"}
    ends = [r["payload"]["at_s"] - r["payload"]["silence_s"] for r in records if r["type"] == "input:turn_end"]
    replies = _reply_delays(ends, sounds)
    problems = check_records(records)
    is_silent = silent_s is not None and silent_s <= _SILENT_WITHIN_S
    return [
        Finding(
            name="end of the question → first sound of the answer", value_s=replies[0], is_good=replies[0] is not None
        ),
        Finding(name="onset of the interruption → silence", value_s=silent_s, is_good=is_silent),
        Finding(name="the words were taken as an interruption", value_s=None, is_good="cancel" in verdicts),
        Finding(name="nothing of the old answer was heard later", value_s=None, is_good=not old_later),
        Finding(
            name="end of the interruption → first sound of the new answer",
            value_s=replies[1],
            is_good=bool(new) and ended.get(new[0]["generationId"]) == "COMPLETED",
        ),
        Finding(name="the events file has no contradictions", value_s=None, is_good=not problems),
    ]


def _reply_delays(ends_s: list[float], sounds: list[dict[str, Any]]) -> list[float | None]:
    found: list[float | None] = []
    for end_s in ends_s[:2]:
        later = [r["payload"]["at_s"] for r in sounds if r["payload"]["at_s"] > end_s]
        found.append(later[0] - end_s if later else None)
    return ([*found, None, None])[:2]


def marks_of(records: Sequence[dict[str, Any]], begin_s: float) -> list[Mark]:
    """Return the moments worth showing in the picture."""
    found: list[Mark] = []
    for record in records:
        payload = record["payload"]
        match record["type"]:
            case "input:speech" if payload["phase"] == "onset":
                found.append(Mark(at_s=payload["at_s"] - begin_s, text="user speaks", is_user=True))
            case "input:turn_end":
                found.append(Mark(at_s=payload["at_s"] - begin_s, text="turn over", is_user=True))
            case "output:first_sound" if payload["startOffset_s"] == 0.0 and not any(
                m.text == "first sound" and m.tag == record["generationId"] for m in found
            ):
                found.append(
                    Mark(at_s=payload["at_s"] - begin_s, text="first sound", is_user=False, tag=record["generationId"])
                )
            case "output:duck":
                found.append(Mark(at_s=payload["at_s"] - begin_s, text="ducked", is_user=False))
            case "output:cut":
                found.append(Mark(at_s=payload["lastSample_at_s"] - begin_s, text="cut", is_user=False))
            case _:
                pass
    return found


def demo_main(argv: list[str]) -> int:
    """Run the command line `mynah demo`: 0 if the interruption was honoured, else 3."""
    parser = argparse.ArgumentParser(
        prog="mynah demo", description="A scripted conversation with an interruption, measured."
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="folder for demo.wav, events.jsonl, timeline.png"
    )
    add_common_options(parser)
    args = parser.parse_args(argv)
    try:
        args.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError("out_unwritable", f"cannot write to {args.out}: {error.strerror}") from error
    args.llm = "none"
    args.seed = 1 if args.seed is None else args.seed
    events = args.out / "events.jsonl"
    with tempfile.TemporaryDirectory() as scratch:
        args.data = Path(scratch)
        options = replace(run_options(args, strict=True), events=events)
        models = load_all(options.settings, ModelStore(), SystemClock(), lambda part: None, args.seed)
        track, onset_s = user_track(models.voices[0])
        given = SimulationInput(user=track, room=RoomConfig())
        result = run_virtual(options, given, models=models, wrap_llm=lambda _: DemoLlm())
    records = list(read_records(events.read_text(encoding="utf-8").splitlines()))
    user = resample(track, MIC_RATE_HZ, OUT_RATE_HZ)
    length = max(len(user), len(result.character))
    stereo = np.zeros((length, 2), np.float32)
    stereo[: len(user), 0] = user
    stereo[: len(result.character), 1] = result.character
    write_wav(args.out / "demo.wav", stereo, OUT_RATE_HZ)
    draw_timeline(args.out / "timeline.png", stereo, OUT_RATE_HZ, marks_of(records, result.begin_s))
    findings = evaluate(records, result.character, result.begin_s, onset_s)
    for finding in findings:
        value = "" if finding.value_s is None else f"{finding.value_s * 1000:6.0f} ms"
        sys.stdout.write(f"{'ok  ' if finding.is_good else 'FAIL'} {value:>9}  {finding.name}\n")
    (args.out / "findings.json").write_text(
        json.dumps([{"name": f.name, "value_s": f.value_s, "ok": f.is_good} for f in findings], indent=2),
        encoding="utf-8",
    )
    return 0 if all(finding.is_good for finding in findings) else 3
