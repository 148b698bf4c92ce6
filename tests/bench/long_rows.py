"""Rows of the half hour on loudspeakers in virtual time, and of users who interrupt in it."""

from __future__ import annotations

from collections.abc import Sequence

from bench.own_voice import HEADPHONES, Found, OwnVoice, character_speech
from bench.plan import FULL, Setting
from bench.room import Failed
from bench.rows import Budget, Row, share_row

HALF_AN_HOUR_S = 1800.0
_SHORT_S = 150.0
_LANGUAGES = {"en": "English", "zh": "Chinese"}


class LongSection:
    """The real voice, player and ears without a device: half an hour of rooms, and five minutes of headphones."""

    name = "long"

    def __init__(self, setting: Setting) -> None:
        """Prepare."""
        self._set = setting
        self._found: dict[str, Found] = {}

    def run(self) -> None:
        """Measure; takes about a tenth of the virtual time."""
        from desktop.models import ModelStore

        if self._set.recordings is None:
            raise Failed("no recordings: set MYNAH_SPEECH to the folder that has manifest.jsonl")
        sentences = character_speech(ModelStore().path("piper-en_US-joe-medium") / "voice.onnx")
        seconds = HALF_AN_HOUR_S if self._set.plan is FULL else _SHORT_S
        own = OwnVoice(sentences=sentences, recordings=self._set.recordings, seconds=seconds, tell=self._set.tell.say)
        self._found["−6 dB echo"] = own.run()
        headphones = OwnVoice(
            sentences=sentences,
            recordings=self._set.recordings,
            seconds=seconds / 6,
            scenes=[HEADPHONES],
            tell=self._set.tell.say,
        )
        self._found["no echo"] = headphones.run()

    def rows(self) -> Sequence[Row]:
        """Return what was measured so far."""
        rows: list[Row] = []
        found = self._found.get("−6 dB echo")
        where = f"−6 dB echo, {found.talked_s / 60:.0f} min in rooms (virtual)" if found else "−6 dB echo, rooms"
        for name, values, unit in (
            ("own voice taken for the user", (float(found.own_cuts + found.own_utterances),) if found else (), "times"),
            ("gave up listening over its voice", (float(found.half_duplex),) if found else (), "times"),
        ):
            rows.append(_row(name, where, values, unit, Budget(share=0), "synthetic"))
        lowered = (60.0 * found.own_ducks / found.talked_s,) if found else ()
        rows.append(_row("own voice lowered itself", where, lowered, "a minute", None, "synthetic"))
        for condition, down, silent in (
            ("−6 dB echo", Budget(p50=300), Budget(p50=420, p95=600)),
            ("no echo", Budget(p50=150), Budget(p50=270, p95=380)),
        ):
            users = self._found.get(condition, Found())
            for code, title in _LANGUAGES.items():
                where = f"{condition}, {title}, loud and quiet (virtual)"
                rows.append(_row("onset → output down by ≥ 12 dB", where, _ms(users.down_s, code), "ms", down))
                rows.append(
                    _row("onset → output silent, true interruption", where, _ms(users.silent_s, code), "ms", silent)
                )
            rows.append(
                share_row(
                    name="true interruptions noticed",
                    condition=f"{condition} (virtual)",
                    hits=users.users - len(users.unnoticed),
                    trials=users.users,
                    source="component",
                    stimuli="recorded",
                )
            )
        return rows


def _ms(times: dict[str, list[float]], language: str) -> tuple[float, ...]:
    return tuple(1000 * each for key, values in times.items() if key.startswith(language) for each in values)


def _row(
    name: str, condition: str, values: tuple[float, ...], unit: str, budget: Budget | None, stimuli: str = "recorded"
) -> Row:
    return Row(
        name=name,
        condition=condition,
        values=values,
        unit=unit,
        budget=budget,
        source="component",
        stimuli=stimuli,  # type: ignore[arg-type] # one of the two kinds
    )
