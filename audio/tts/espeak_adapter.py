"""The espeak-ng program: a plain voice for languages the chosen voice cannot say. Word times are estimated."""

from __future__ import annotations

import re
import shutil
import subprocess
from xml.sax.saxutils import escape

import numpy as np

from audio.tts.normalise import normalise, sentence
from audio.tts.timing import estimated_utterance
from audio.tts.voice import Utterance
from orchestrator.contracts.errors import PartFailed

_PROGRAM = "espeak-ng"
_VOICES = {"en": ("en-us",), "zh": ("cmn-latn-pinyin", "cmn")}
"""By language, the best first. The voice cmn finds the pinyin of a character and says that as English: "nee three"."""

_LATIN = re.compile(r"[A-Za-z][A-Za-z'’.+-]*")
_WORDS_PER_MINUTE = 165
_TIMEOUT_S = 15.0
_HEADER_BYTES = 44


class EspeakSynthesiser:
    """Speaks by starting the program once per sentence."""

    def __init__(self, program: str | None = None, *, speed: float = 1.0, volume: float = 0.6) -> None:
        """Use `program` (default: espeak-ng on the path; without it the voice speaks no language)."""
        self._program = program if program is not None else shutil.which(_PROGRAM)
        self._pace = speed, volume

    @property
    def name(self) -> str:
        """Name of the voice."""
        return _PROGRAM

    def speaks(self, language: str) -> bool:
        """Whether the program is there and has a voice for `language`."""
        return self._program is not None and language in _VOICES

    def adjust(self, *, speed: float, volume: float) -> None:
        """Change pace and loudness from the next text on."""
        self._pace = speed, volume

    def synthesise(self, text: str, *, language: str) -> Utterance:
        """Speak `text`.

        Raises:
            PartFailed: the program is missing, failed or took too long.
        """
        if self._program is None:
            raise PartFailed("espeak_missing", "espeak-ng is not installed", part="tts", recoverable=True)
        spoken = sentence(normalise(text, language), language)
        voices = _VOICES.get(language, (language,))
        for voice in voices:
            done = self._run(voice, spoken, is_mixed=language == "zh" and _LATIN.search(spoken) is not None)
            if done.returncode == 0:
                break
        if done.returncode != 0 or len(done.stdout) <= _HEADER_BYTES:
            detail = done.stderr.decode("utf-8", "replace").strip().splitlines()
            message = f"espeak-ng failed: {detail[-1] if detail else 'no sound'}"
            raise PartFailed("espeak_failed", message, part="tts", recoverable=True)
        rate_hz = int.from_bytes(done.stdout[24:28], "little")
        data = done.stdout[_HEADER_BYTES:]
        pcm = np.frombuffer(data[: len(data) // 2 * 2], dtype="<i2").astype(np.float32) / 32768.0
        return estimated_utterance(text, pcm * np.float32(self._pace[1]), rate_hz)

    def _run(self, voice: str, spoken: str, *, is_mixed: bool) -> subprocess.CompletedProcess[bytes]:
        assert self._program is not None
        speed = str(round(_WORDS_PER_MINUTE * self._pace[0]))
        command = [self._program, "-v", voice, "-s", speed, "--stdin", "--stdout", "-b", "1"]
        if is_mixed:
            command.append("-m")
            spoken = _marked(spoken, voice)
        try:
            return subprocess.run(
                command, input=spoken.encode("utf-8"), capture_output=True, timeout=_TIMEOUT_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise PartFailed("espeak_failed", f"espeak-ng failed: {error}", part="tts", recoverable=True) from error


def _marked(spoken: str, voice: str) -> str:
    """Mark which voice says what: Latin letters would be read as pinyin."""
    parts = []
    at = 0
    for match in _LATIN.finditer(spoken):
        parts += [(voice, spoken[at : match.start()]), (_VOICES["en"][0], match[0])]
        at = match.end()
    parts.append((voice, spoken[at:]))
    said = (f'<voice name="{name}">{escape(text)}</voice>' for name, text in parts if text.strip())
    return "<speak>" + "".join(said) + "</speak>"
