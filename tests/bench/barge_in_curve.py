"""The barge-in thresholds as curves: recall, false cuts, false ducks and times over how much voice is asked for.

The ears hear every stimulus once, with the real canceller and VADs; what they saw is then judged with many thresholds.
Cuts here are those of the sound, which come back when the recogniser finds no words: for good is the running program's
row. `python -m bench.barge_in_curve --json F --markdown F --picture F`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from bench.__main__ import _recordings
from bench.own_voice import ECHO_DB, LOUD_DB, QUIET_DB, character_speech, clear_utterances
from bench.plan import Teller
from bench.rows import percentile
from bench.scorer import voiced_span
from bench.stimuli import BACKCHANNELS, MAKERS, Recordings, Stimulus, spoken, synthetic
from rigs.acoustics import Path as SoundPath
from rigs.acoustics import Place, image_source_response
from rigs.loudspeaker_rig import LoudspeakerRig, Said

from audio.barge_in import Action, BargeIn, Evidence, Output
from audio.ears_config import SENSITIVITY, BargeInConfig, EarsConfig, VadConfig
from audio.echo_path import EchoPath
from audio.pcm import db_to_gain
from audio.ports import Samples
from audio.simulated import MIC_RATE_HZ, OUT_RATE_HZ, active_rms

VOICED_S = (0.1, 0.128, 0.16, 0.192, 0.256, 0.32)
DUCK_PROBABILITIES = (0.3, 0.4, 0.5, 0.6)
AT_S = 2.0
LEAD_S, COUPLING_DB, LOSS_DB, LEAK_DB = 0.018, -2.0, 30.0, -25.0
"""What is usually learned in these rooms: the reference is read ahead, and a little of the energy is lost."""
_PLACES = (Place(rt60_s=0.2, microphone_m=(1.6, 1.5, 0.8)), Place(rt60_s=0.35), Place(rt60_s=0.5))
_TV_DB = (-12.0, -20.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sound:
    """A stimulus as it comes to the microphone. `kind` says what it is; only users are to interrupt."""

    kind: str
    name: str
    samples: Samples
    onset_s: float

    @property
    def user_db(self) -> float:
        """How loud the user of that room usually talks."""
        return QUIET_DB if "quiet" in self.kind else LOUD_DB


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the ears saw of a sound, window by window, and when each window was known."""

    sound: Sound
    windows: tuple[tuple[float, Evidence], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One set of thresholds and what it does. Times are ms after the onset; shares in percent."""

    condition: str
    preset: str
    cut_voiced_s: float
    duck_probability: float
    n_users: int
    recall: float
    down_p50: float
    down_p95: float
    cut_p50: float
    cut_p95: float
    cuts: dict[str, float]
    ducks: dict[str, float]
    n: dict[str, int]


def sounds(recordings: Recordings, *, each: int, seed: int) -> list[Sound]:
    """Return users and disturbances, `each` of a kind."""
    found = []
    for language in ("en", "zh"):
        names = clear_utterances(recordings, language)[: 2 * each]
        for level_db, loudness in ((LOUD_DB, "loud"), (QUIET_DB, "quiet")):
            for name in names:
                stimulus = recordings.load(name, longest_s=1.6)
                found.append(_sound(f"user {language} {loudness}", stimulus, level_db))
        for down_db in _TV_DB:
            for name in names[:each]:
                found.append(
                    _sound(f"TV speech {down_db:.0f} dB", recordings.load(name, longest_s=3.0), LOUD_DB + down_db)
                )
        texts = list(BACKCHANNELS[language].items())
        for number in range(each):
            name, text = texts[number % len(texts)]
            stimulus = spoken(text, language, pitch=20 + 7 * number % 75, name=name)
            found.append(_sound(f"backchannel {language}", stimulus, LOUD_DB))
    for maker in sorted(MAKERS):
        found += [_sound(maker, synthetic(maker, seed + number), None) for number in range(each)]
    found += [_sound("recorded noise", recordings.load(name, longest_s=3.0), None) for name in recordings.noises()]
    return found


def _sound(kind: str, stimulus: Stimulus, level_db: float | None) -> Sound:
    samples = stimulus.samples
    if level_db is not None:
        samples = samples * np.float32(db_to_gain(level_db - 20 * float(np.log10(active_rms(samples, MIC_RATE_HZ)))))
    return Sound(
        kind=kind,
        name=stimulus.name,
        samples=np.asarray(samples, np.float32),
        onset_s=voiced_span(samples, MIC_RATE_HZ).begin_s,
    )


def look(sound: Sound, sentences: Sequence[Samples], number: int, *, has_echo: bool) -> Seen:
    """Let the ears hear a sound while the character goes on talking; nothing is lowered or cut."""
    voice_db = 20 * float(np.log10(active_rms(np.concatenate(sentences), OUT_RATE_HZ)))
    user_db = sound.user_db
    path = SoundPath(
        response=image_source_response(_PLACES[number % len(_PLACES)]),
        delay_s=0.03 + 0.05 * (number % 4),
        gain_db=user_db + ECHO_DB - voice_db,
    )
    turn = number % len(sentences)
    # A loudspeaker that was used before; the very first start is measured by tests/audio/test_loudspeakers.py.
    known = EchoPath(
        delay_s=path.delay_s + LEAD_S, coupling_db=path.gain_db + COUPLING_DB, loss_db=LOSS_DB, leak_db=LEAK_DB
    )
    rig = LoudspeakerRig(
        sentences=[*sentences[turn:], *sentences[:turn]],
        path=path,
        has_echo=has_echo,
        known=known if has_echo else None,
        noise_db=user_db - 42.0,
        seed=number,
    )
    windows: list[tuple[float, Evidence]] = []

    def keep(evidence: Evidence) -> float:
        at_s = rig.now_s
        windows.append((at_s, replace(evidence, start_s=evidence.start_s - 100.0, end_s=evidence.end_s - 100.0)))
        return 0.0

    rig.ears._barge_in.window = keep  # type: ignore[method-assign]
    rig.is_talking = False
    rig.run(1.0)
    rig.is_talking = True
    begin_s = 1.0 + AT_S
    rig.run(AT_S + len(sound.samples) / MIC_RATE_HZ + 0.6, [Said(at_s=begin_s, samples=sound.samples)])
    placed = replace(sound, onset_s=begin_s + sound.onset_s)
    return Seen(sound=placed, windows=tuple(windows))


def judge(seen: Seen, config: BargeInConfig) -> tuple[float | None, float | None]:
    """Return when the voice is lowered and cut after the sound came, None for never."""
    barge_in = BargeIn(config, VadConfig(), gap_s=EarsConfig().endpoint.fragment_gap_s)
    barge_in.user_db = seen.sound.user_db
    down_s: float | None = None
    for at_s, evidence in seen.windows:
        barge_in.window(evidence)
        action = barge_in.decide(at_s, Output.INTERRUPTIBLE)
        if at_s < seen.sound.onset_s - 0.05 or action is Action.NONE:
            continue
        if action in (Action.DUCK, Action.CUT) and down_s is None:
            down_s = at_s
        if action is Action.CUT:
            return down_s, at_s
    return down_s, None


def point(seen: Sequence[Seen], config: BargeInConfig, *, condition: str, preset: str = "") -> Point:
    """Judge everything with one set of thresholds."""
    cuts: dict[str, list[bool]] = defaultdict(list)
    ducks: dict[str, list[bool]] = defaultdict(list)
    down_ms: list[float] = []
    cut_ms: list[float] = []
    users = 0
    for each in seen:
        down_s, cut_s = judge(each, config)
        if each.sound.kind.startswith("user"):
            users += 1
            if cut_s is not None and down_s is not None:
                down_ms.append(1000 * (down_s - each.sound.onset_s))
                cut_ms.append(1000 * (cut_s - each.sound.onset_s))
            continue
        cuts[each.sound.kind].append(cut_s is not None)
        ducks[each.sound.kind].append(down_s is not None)

    def share(found: dict[str, list[bool]]) -> dict[str, float]:
        return {kind: round(100.0 * sum(hits) / len(hits), 1) for kind, hits in sorted(found.items())}

    return Point(
        condition=condition,
        preset=preset,
        cut_voiced_s=config.cut_voiced_s,
        duck_probability=config.duck_probability,
        n_users=users,
        recall=round(100.0 * len(cut_ms) / users, 1) if users else 0.0,
        down_p50=round(percentile(down_ms, 50)),
        down_p95=round(percentile(down_ms, 95)),
        cut_p50=round(percentile(cut_ms, 50)),
        cut_p95=round(percentile(cut_ms, 95)),
        cuts=share(cuts),
        ducks=share(ducks),
        n={kind: len(hits) for kind, hits in sorted(cuts.items())},
    )


def curve(seen: Sequence[Seen], condition: str) -> list[Point]:
    """Return the presets and all combinations of the two thresholds."""
    points = [point(seen, config, condition=condition, preset=name) for name, config in SENSITIVITY.items()]
    for voiced_s in VOICED_S:
        for probability in DUCK_PROBABILITIES:
            config = replace(
                BargeInConfig(),
                cut_voiced_s=voiced_s,
                cut_within_s=max(0.32, 2.0 * voiced_s),
                warm_up_cut_voiced_s=max(voiced_s, BargeInConfig().warm_up_cut_voiced_s),
                duck_probability=probability,
            )
            points.append(point(seen, config, condition=condition))
    return points


def markdown(points: Sequence[Point]) -> str:
    """Return the points as a table."""
    kinds = sorted({kind for each in points for kind in each.cuts})
    head = ["condition", "preset", "voice asked for", "duck at", "n", "recall %", "down p50/p95", "cut p50/p95"]
    head += [f"{kind} (n {points[0].n.get(kind, 0)}): cut / lowered %" for kind in kinds]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for each in points:
        cells = [each.condition, each.preset or "–", f"{1000 * each.cut_voiced_s:.0f} ms", f"{each.duck_probability:g}"]
        cells += [str(each.n_users), f"{each.recall:g}", f"{each.down_p50:g} / {each.down_p95:g} ms"]
        cells += [f"{each.cut_p50:g} / {each.cut_p95:g} ms"]
        cells += [f"{each.cuts.get(kind, 0):g} / {each.ducks.get(kind, 0):g}" for kind in kinds]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def picture(points: Sequence[Point]) -> str:
    """Return an SVG: time to the cut against false cuts, a line per condition, presets marked."""
    width, height, left, top = 640, 400, 70, 30
    span_ms, span = 600.0, 100.0

    def place(each: Point) -> tuple[float, float]:
        false = sum(each.cuts[kind] * each.n[kind] for kind in each.cuts) / max(1, sum(each.n.values()))
        x = left + (width - left - 20) * min(each.cut_p50, span_ms) / span_ms
        return round(x, 1), round(top + (height - top - 50) * (1 - false / span), 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
        'font-size="12"><rect width="100%" height="100%" fill="white"/>'
    ]
    for step in range(0, 101, 20):
        y = top + (height - top - 50) * (1 - step / span)
        parts.append(f'<line x1="{left}" x2="{width - 20}" y1="{y}" y2="{y}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{step} %</text>')
    for step in range(0, 601, 100):
        x = left + (width - left - 20) * step / span_ms
        parts.append(f'<text x="{x}" y="{height - 32}" text-anchor="middle">{step}</text>')
    parts.append(f'<text x="{width / 2}" y="{height - 10}" text-anchor="middle">onset to cut, p50, ms</text>')
    parts.append(f'<text x="{left}" y="18">disturbances that cut the sound (they come back), all kinds</text>')
    for number, condition in enumerate(dict.fromkeys(each.condition for each in points)):
        colour = ("#1b6ca8", "#b5541c")[number % 2]
        mine = [each for each in points if each.condition == condition]
        steps = [each for each in mine if not each.preset and each.duck_probability == DUCK_PROBABILITIES[1]]
        line = " ".join(f"{x},{y}" for x, y in map(place, steps))
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{width - 130}" y="{top + 16 * (number + 1)}" fill="{colour}">{condition}</text>')
        for each in mine:
            if each.preset:
                x, y = place(each)
                parts.append(f'<circle cx="{x}" cy="{y}" r="5" fill="{colour}"/>')
                parts.append(f'<text x="{x + 8}" y="{y - 6}" fill="{colour}">{each.preset}</text>')
    return "".join(parts) + "</svg>\n"


def measure(
    recordings: Recordings, sentences: Sequence[Samples], *, each: int, seed: int, tell: Callable[[str], None]
) -> list[Point]:
    """Hear all sounds in both conditions and return the curves."""
    chosen = sounds(recordings, each=each, seed=seed)
    points: list[Point] = []
    for condition, has_echo in (("no echo", False), ("−6 dB echo", True)):
        tell(f"{condition}: {len(chosen)} sounds")
        seen = [look(sound, sentences, number, has_echo=has_echo) for number, sound in enumerate(chosen)]
        points += curve(seen, condition)
    return points


def main(argv: Sequence[str]) -> int:
    """Measure and store; 2 for bad arguments."""
    parser = argparse.ArgumentParser(prog="python -m bench.barge_in_curve", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="F")
    parser.add_argument("--markdown", type=Path, metavar="F")
    parser.add_argument("--picture", type=Path, metavar="F", help="an SVG")
    parser.add_argument("--each", type=int, default=8, metavar="N", help="sounds of each kind (8)")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    args = parser.parse_args(argv)
    recordings = _recordings()
    if recordings is None:
        sys.stderr.write("barge_in_curve: no recordings: set MYNAH_SPEECH\n")
        return 2
    from desktop.models import ModelStore

    sentences = character_speech(ModelStore().path("piper-en_US-joe-medium") / "voice.onnx")
    points = measure(recordings, sentences, each=args.each, seed=args.seed, tell=Teller().say)
    body = json.dumps([_stored(each) for each in points], ensure_ascii=False, indent=1) + "\n"
    for path, text in ((args.json, body), (args.markdown, markdown(points)), (args.picture, picture(points))):
        if path is not None:
            path.write_text(text, encoding="utf-8")
    sys.stdout.write(markdown([each for each in points if each.preset]))
    return 0


def _stored(each: Point) -> dict[str, object]:
    return {name: getattr(each, name) for name in Point.__dataclass_fields__}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
