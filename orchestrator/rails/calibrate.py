"""How well intents are told apart: the report of `mynah flows calibrate`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from orchestrator.rails.background import shipped
from orchestrator.rails.index import Match, MatchIndex, VectorStore
from orchestrator.rails.language import language_of
from orchestrator.rails.model import RailsConfig, RailSettings

_WORTH_A_WARNING = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class IntentReport:
    """One intent: how many of its examples would be recognised without themselves. `missed` are the others."""

    intent: str
    examples: int
    recognised: int
    missed: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """Examples of `intent` that are nearer to `other`."""

    intent: str
    other: str
    count: int
    example: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationReport:
    """The whole report. `thresholds` are the calibrated lifts over small talk by language, `threshold` a fixed one."""

    provider: str
    scale: str
    margin: float
    threshold: float | None
    thresholds: dict[str, float]
    intents: tuple[IntentReport, ...]
    overlaps: tuple[Overlap, ...]
    small_talk: int
    fired: tuple[tuple[str, str], ...]

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON."""
        return {
            "provider": self.provider,
            "scale": self.scale,
            "margin": self.margin,
            "threshold": "auto" if self.threshold is None else self.threshold,
            "auto_thresholds": {k: round(v, 4) for k, v in self.thresholds.items()},
            "intents": [
                {"intent": i.intent, "examples": i.examples, "recognised": i.recognised, "missed": list(i.missed)}
                for i in self.intents
            ],
            "overlaps": [
                {"intent": o.intent, "other": o.other, "count": o.count, "example": o.example} for o in self.overlaps
            ],
            "small_talk": {"sentences": self.small_talk, "fired": [{"text": t, "intent": n} for t, n in self.fired]},
        }

    def lines(self) -> list[str]:
        """Return the report as text."""
        found = [
            f"provider {self.provider}, scale {self.scale}, margin {self.margin:g}",
            "threshold auto: " + ", ".join(f"{k} {v:.3f}" for k, v in self.thresholds.items())
            if self.threshold is None
            else f"threshold {self.threshold:g}",
        ]
        for intent in self.intents:
            share = intent.recognised / intent.examples if intent.examples else 0.0
            found.append(f"  {intent.intent}: {intent.recognised} of {intent.examples} ({share:.0%})")
        found.append(f"small talk: {len(self.fired)} of {self.small_talk} sentences fire")
        found += [f"  {name}: {text}" for text, name in self.fired]
        for overlap in self.overlaps:
            found.append(
                f"warning: {overlap.count} examples of {overlap.intent!r} are nearer to {overlap.other!r}, "
                f"such as {overlap.example!r}"
            )
        return found


async def calibrate(config: RailsConfig, store: VectorStore) -> CalibrationReport:
    """Measure the intents of a configuration. Raises `EmbeddingFailed`."""
    items = [(text, name) for name, texts in config.user_intents.items() for text in texts]
    settings = config.settings
    talk, rivals = (shipped().ordinary, shipped().rivals) if items else ((), ())
    index = await MatchIndex.build(items, store, scale=settings.similarity_scale, background=talk, rivals=rivals)
    is_auto = settings.similarity_threshold is None
    left_out = index.leave_one_out(by_contrast=is_auto)
    reports: list[IntentReport] = []
    confusions: Counter[tuple[str, str]] = Counter()
    samples: dict[tuple[str, str], str] = {}
    by_intent: dict[str, list[tuple[str, bool]]] = {name: [] for name in config.user_intents}
    for (text, label), match in zip(items, left_out, strict=True):
        by_intent[label].append((text, match.label == label and _passes(match, index, settings)))
        if match.label != label:
            confusions[label, match.label] += 1
            samples.setdefault((label, match.label), text)
    for name, results in by_intent.items():
        missed = tuple(text for text, ok in results if not ok)
        reports.append(
            IntentReport(intent=name, examples=len(results), recognised=len(results) - len(missed), missed=missed)
        )
    overlaps = tuple(
        Overlap(intent=a, other=b, count=count, example=samples[a, b])
        for (a, b), count in confusions.most_common()
        if count >= max(2, _WORTH_A_WARNING * len(by_intent[a]))
    )
    fired = [
        (match.text, match.label)
        for match in index.small_talk_left_out(by_contrast=is_auto)
        if _passes(match, index, settings)
    ]
    return CalibrationReport(
        provider=store.provider.name,
        scale=settings.similarity_scale,
        margin=settings.margin,
        threshold=settings.similarity_threshold,
        thresholds=dict(index.thresholds),
        intents=tuple(reports),
        overlaps=overlaps,
        small_talk=len(talk) + len(rivals),
        fired=tuple(fired),
    )


def _passes(match: Match, index: MatchIndex, settings: RailSettings) -> bool:
    if settings.similarity_threshold is not None:
        return match.score >= settings.similarity_threshold and match.margin >= settings.margin
    return match.lift >= index.thresholds[language_of(match.text)] and match.margin >= settings.margin
