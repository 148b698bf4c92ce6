"""Recognises a whole file, for `mynah transcribe`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from audio.pcm import read_wav, resample
from audio.stt.chinese import ChineseScript, finish_text
from audio.stt.rejection import reject
from audio.stt.transcription import SAMPLE_RATE_HZ, SpeechRecogniser, Transcription


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTranscript:
    """The text of a file; `rejected` names the rule that found no speech in it, then `text` is empty."""

    text: str
    audio_s: float
    result: Transcription
    rejected: str | None


def transcribe_file(
    path: Path,
    recogniser: SpeechRecogniser,
    *,
    languages: Sequence[str] = ("en", "zh"),
    hotwords: Sequence[str] = (),
    script: ChineseScript = ChineseScript.SIMPLIFIED,
) -> FileTranscript:
    """Return what is said in the wav file `path`, of any length, rate and number of channels.

    Raises:
        InputError: the file can't be read (`wav_unreadable`, `wav_format`, `wav_empty`).
        PartFailed: the model or its server failed.
    """
    samples, rate_hz = read_wav(path)
    audio = resample(samples, rate_hz, SAMPLE_RATE_HZ)
    result = recogniser.transcribe(audio, languages=languages, hotwords=hotwords, final=True)
    rejected = reject(result, vad_fraction=None)
    text = "" if rejected else finish_text(result.text, language=result.language, script=script, is_whole=True)
    return FileTranscript(text=text, audio_s=len(audio) / SAMPLE_RATE_HZ, result=result, rejected=rejected)
