"""Sounds to disturb or to ask a voice program with: made from a seed, spoken by espeak-ng, or cut from recordings.

Everything is float32 mono at 16 kHz. Synthetic sounds stand in for real ones; figures on them are labelled so.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import wave
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
from bench.scorer import Levels, Samples, levels_db, voice_level_db, voiced_span

RATE_HZ = 16_000
Rng = np.random.Generator
Kind = Literal["recorded", "synthetic"]

BACKCHANNELS: Mapping[str, Mapping[str, str]] = {
    "en": {"mm-hm": "[[m:h'm:]]", "yeah": "yeah", "uh-huh": "[[Vh'V]]"},
    "zh": {"嗯": "[[@mh'@m]]", "嗯嗯": "嗯嗯", "嗯 (short)": "嗯"},
}
"""What is said, and how espeak-ng is told to: it would spell "mm-hm"."""
_PLACES = 3
_PLACE_APART = 40
_PLACE_UNDER_DB = 12.0
_ESPEAK_VOICES = {"en": "en-us", "zh": "cmn-latn-pinyin"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stimulus:
    """A sound with a name, its language (`none` for what is no speech), and where it comes from."""

    name: str
    language: str
    kind: Kind
    samples: Samples

    @property
    def seconds(self) -> float:
        """How long it is."""
        return len(self.samples) / RATE_HZ


# --- noises of a room --------------------------------------------------------------------------------------


def cough(rng: Rng) -> Samples:
    """One to three bursts of broad noise with a sharp attack and a throaty decay."""
    parts = []
    for _ in range(int(rng.integers(1, 4))):
        length = int(RATE_HZ * rng.uniform(0.14, 0.28))
        time_s = np.arange(length) / RATE_HZ
        envelope = (1 - np.exp(-time_s / 0.006)) * np.exp(-time_s / rng.uniform(0.05, 0.09))
        throat = np.sin(2 * np.pi * rng.uniform(110, 190) * time_s + rng.uniform(0, 6))
        body = _band(rng.standard_normal(length), 350, 3800) + 0.35 * throat
        parts += [envelope * body, np.zeros(int(RATE_HZ * rng.uniform(0.08, 0.2)))]
    return _scaled(np.concatenate(parts), 0.35)


def click(rng: Rng) -> Samples:
    """A mouse click: two transients of a few milliseconds."""
    sound = np.zeros(int(RATE_HZ * 0.25))
    for at_s in (0.02, 0.02 + rng.uniform(0.07, 0.12)):
        _add(sound, at_s, _tap(rng, 0.004, 1500, 7000))
    return _scaled(sound, 0.4)


def keyboard(rng: Rng) -> Samples:
    """Two seconds of typing at eight to twelve keys a second."""
    sound = np.zeros(int(RATE_HZ * 2.0))
    at_s = 0.02
    while at_s < 1.9:
        _add(sound, at_s, rng.uniform(0.4, 1.0) * _tap(rng, rng.uniform(0.006, 0.014), 700, 6000))
        at_s += float(rng.uniform(0.07, 0.14))
    return _scaled(sound, 0.3)


def door(rng: Rng) -> Samples:
    """A door falls shut: a low thud and a rattle."""
    length = int(RATE_HZ * 0.8)
    time_s = np.arange(length) / RATE_HZ
    thud = np.sin(2 * np.pi * rng.uniform(55, 90) * time_s) * np.exp(-time_s / 0.09)
    sound = 1.5 * thud + _band(rng.standard_normal(length), 60, 900) * np.exp(-time_s / 0.05)
    for at_s in rng.uniform(0.05, 0.35, 4):
        _add(sound, float(at_s), 0.25 * _tap(rng, 0.01, 900, 4000))
    return _scaled(sound, 0.5)


def laugh(rng: Rng) -> Samples:
    """Four to seven short voiced syllables that fall in pitch, with breath between."""
    parts = []
    pitch_hz = rng.uniform(190, 260)
    for _ in range(int(rng.integers(4, 8))):
        parts.append(_vowel(rng, pitch_hz, rng.uniform(0.08, 0.12), (700, 1200, 2500)))
        breath = _band(rng.standard_normal(int(RATE_HZ * rng.uniform(0.06, 0.1))), 800, 4000)
        parts.append(0.08 * breath)
        pitch_hz *= 0.95
    return _scaled(np.concatenate(parts), 0.3)


def babble(rng: Rng) -> Samples:
    """Three seconds of six voices at once, as from a television in the next room: nothing to understand, and low."""
    length = int(RATE_HZ * 3.0)
    sound = np.zeros(length)
    for _ in range(6):
        at_s, pitch_hz = float(rng.uniform(0, 0.2)), rng.uniform(95, 230)
        while at_s < 2.8:
            formants = (rng.uniform(300, 800), rng.uniform(900, 2200), rng.uniform(2300, 3000))
            syllable = _vowel(rng, pitch_hz * rng.uniform(0.9, 1.1), rng.uniform(0.1, 0.22), formants)
            _add(sound, at_s, syllable * rng.uniform(0.4, 1.0))
            at_s += len(syllable) / RATE_HZ + float(rng.uniform(0.02, 0.2))
    return _scaled(_band(sound, 200, 2500), 0.06)


def music(rng: Rng) -> Samples:
    """Three seconds of a plucked tune over chords, as from a radio in the room."""
    sound = np.zeros(int(RATE_HZ * 3.0))
    root_hz = float(rng.uniform(110, 180))
    for beat in range(12):
        steps = [0, 4, 7] if beat % 4 == 0 else [int(rng.choice([0, 2, 4, 7, 9, 12]))]
        length = int(RATE_HZ * (0.9 if beat % 4 == 0 else 0.3))
        time_s = np.arange(length) / RATE_HZ
        for step in steps:
            hz = root_hz * 2 ** (step / 12) * (1 if beat % 4 == 0 else 2)
            tone = sum(np.sin(2 * np.pi * hz * part * time_s) / part for part in range(1, 6))
            _add(sound, beat * 0.25, tone * np.exp(-time_s / 0.35) * np.minimum(1.0, time_s / 0.004))
    return _scaled(sound, 0.15)


MAKERS: Mapping[str, Callable[[Rng], Samples]] = {
    "cough": cough,
    "click": click,
    "keyboard": keyboard,
    "door": door,
    "laugh": laugh,
    "babble": babble,
    "music": music,
}


def synthetic(name: str, seed: int) -> Stimulus:
    """Make one of `MAKERS`; the same seed makes the same sound."""
    rng = np.random.default_rng([seed, sorted(MAKERS).index(name)])
    return Stimulus(name=f"{name} {seed}", language="none", kind="synthetic", samples=MAKERS[name](rng))


# --- speech ------------------------------------------------------------------------------------------------


def spoken(text: str, language: str, *, speed: int = 150, pitch: int = 50, name: str | None = None) -> Stimulus:
    """Let espeak-ng say `text`, or phonemes in its notation in double brackets, which are the same in every language.

    Raises:
        RuntimeError: if espeak-ng is not installed or fails.
    """
    if shutil.which("espeak-ng") is None:
        raise RuntimeError("espeak-ng is not installed")
    voice = _ESPEAK_VOICES["en" if text.startswith("[[") else language]
    command = ["espeak-ng", "-v", voice, "-s", str(speed), "-p", str(pitch), "--stdout", text]
    done = subprocess.run(command, capture_output=True, check=False, timeout=20)
    if done.returncode != 0 or len(done.stdout) < 100:
        raise RuntimeError(f"espeak-ng failed: {done.stderr.decode(errors='replace').strip()}")
    # Written to a pipe, the header has no true length: the samples are what follows it.
    rate_hz = int.from_bytes(done.stdout[24:28], "little")
    body = done.stdout[44 : 44 + (len(done.stdout) - 44) // 2 * 2]
    samples = np.frombuffer(body, dtype="<i2").astype(np.float32) / 32768.0
    return Stimulus(
        name=f"“{name or text}”",
        language=language,
        kind="synthetic",
        samples=_scaled(_resampled(samples, rate_hz), 0.35),
    )


def spoken_by_voice(text: str, voice: Path, *, pitch: float = 1.12) -> Stimulus:
    """Let the Piper voice in a model file say an English `text`, in a higher voice than the character's."""
    from audio.tts.piper_adapter import PiperSynthesiser

    said = PiperSynthesiser(voice).synthesise(text, language="en")
    samples = _resampled(np.asarray(said.pcm, dtype=np.float32), round(said.rate_hz * pitch))
    return Stimulus(name=f"“{text}”", language="en", kind="synthetic", samples=_scaled(samples, 0.35))


@dataclass(frozen=True, slots=True, kw_only=True)
class Recordings:
    """The folder of real recordings with its manifest."""

    folder: Path

    def load(self, name: str, *, longest_s: float | None = None) -> Stimulus:
        """Load a recording by id, cut after `longest_s`."""
        entry = self.entries()[name]
        samples = read_wav(self.folder / entry["path"])
        if longest_s is not None:
            samples = samples[: int(longest_s * RATE_HZ)]
        return Stimulus(name=name, language=entry["lang"], kind="recorded", samples=samples)

    def entries(self) -> dict[str, dict[str, str]]:
        """Return the manifest by id."""
        lines = (self.folder / "manifest.jsonl").read_text(encoding="utf-8").splitlines()
        return {entry["id"]: entry for entry in map(json.loads, filter(str.strip, lines))}

    def utterances(self, language: str, *, shortest_s: float, longest_s: float) -> list[str]:
        """Return ids of utterances of a language, so ordered that the speakers change as soon as possible."""
        fitting = [
            entry
            for entry in self.entries().values()
            if entry["lang"] == language
            and entry.get("kind") == "speech"
            and shortest_s <= float(entry["seconds"]) <= longest_s
        ]
        turns: dict[str, int] = {}
        keyed = []
        for entry in sorted(fitting, key=lambda e: e["id"]):
            turn = turns.get(entry["speaker"], 0)
            turns[entry["speaker"]] = turn + 1
            keyed.append((turn, entry["id"]))
        return [name for _, name in sorted(keyed)]

    def noises(self) -> list[str]:
        """Return ids of recordings without speech."""
        return sorted(name for name, entry in self.entries().items() if name.startswith("nz_"))


def with_inner_pause(stimulus: Stimulus, pause_s: float, place: int = 0) -> Stimulus:
    """Lengthen a quiet moment in the middle of an utterance to a pause of `pause_s`, as of a speaker who thinks.

    `place` 0 is the quietest one, 1 the next but in another word, and so on. A silence that is there already counts as
    part of the pause. What is spliced in is filled with the noise of the recording at that place, faded in and out, so
    that nothing clicks.

    Raises:
        ValueError: if the utterance is too short to have a middle, or has no such place.
    """
    samples = stimulus.samples
    span = voiced_span(samples, RATE_HZ)
    length_s = span.end_s - span.begin_s
    if length_s < 0.8:
        raise ValueError(f"{stimulus.name} is too short for a pause inside")
    frame_s = 0.01
    levels = levels_db(samples, RATE_HZ, frame_s)
    # Three frames together: a stop consonant is quiet for one.
    smooth = np.convolve(levels, np.ones(5) / 5, mode="same")
    frame = _quiet_frame(smooth, (int(span.begin_s / frame_s), int(span.end_s / frame_s)), place)
    if frame is None:
        raise ValueError(f"{stimulus.name} has no quiet place {place + 1}")
    cut = int((frame + 0.5) * frame_s * RATE_HZ)
    gap_frames = max(0, int((pause_s - _silence_s(levels, frame, frame_s)) * RATE_HZ))
    around = samples[max(0, cut - 160) : cut + 160]
    noise = np.resize(np.concatenate([around, around[::-1]]), gap_frames) * _edges(gap_frames)
    quiet = 10 ** (min(0.0, -55.0 - float(levels[frame])) / 20)
    fade = np.linspace(1.0, 0.0, 80, dtype=np.float32)
    before, after = samples[:cut].copy(), samples[cut:].copy()
    before[-80:] *= fade
    after[:80] *= fade[::-1]
    return Stimulus(
        name=f"{stimulus.name} with {pause_s:g} s pause",
        language=stimulus.language,
        kind=stimulus.kind,
        samples=np.concatenate([before, (noise * quiet).astype(np.float32), after]),
    )


def _quiet_frame(smooth: Levels, span: tuple[int, int], place: int) -> int | None:
    """Return the quietest frame in the middle of a span; for a further `place`, one half a second away from those."""
    begin, end = span
    low, high = (begin + int(part * (end - begin)) for part in (0.3, 0.7))
    frame = low + int(np.argmin(smooth[low:high]))
    if place == 0:
        return frame
    # Further places may be nearer to the ends, but have to be quiet: nobody pauses within a vowel.
    low, high = (begin + int(part * (end - begin)) for part in (0.2, 0.8))
    limit_db = float(np.percentile(smooth[begin:end], 90)) - _PLACE_UNDER_DB
    free = np.full(len(smooth), np.inf)
    free[low:high] = smooth[low:high]
    for _ in range(place):
        free[max(0, frame - _PLACE_APART) : frame + _PLACE_APART] = np.inf
        frame = int(np.argmin(free))
        if free[frame] > limit_db:
            return None
    return frame


def inner_pauses(recordings: Recordings, language: str, count: int, pause_s: float) -> list[Stimulus]:
    """Return `count` utterances with a pause inside, if there are as many; the same one again has it elsewhere."""
    names = recordings.utterances(language, shortest_s=1.8, longest_s=7.0)
    found: list[Stimulus] = []
    for place in range(_PLACES):
        for name in names:
            if len(found) < count:
                with suppress(ValueError):
                    found.append(with_inner_pause(recordings.load(name), pause_s, place))
    return found


def _silence_s(levels: Levels, frame: int, frame_s: float) -> float:
    """Return how long it is quiet around a frame; nothing if no frame is quiet there."""
    quiet = levels <= voice_level_db(levels)
    first = last = frame
    if not quiet[frame]:
        return 0.0
    while first > 0 and quiet[first - 1]:
        first -= 1
    while last + 1 < len(quiet) and quiet[last + 1]:
        last += 1
    return (last - first + 1) * frame_s


def join(stimuli: Sequence[Stimulus], gap_s: float) -> Samples:
    """Return the sounds one after the other with silence between and around them."""
    gap = np.zeros(int(gap_s * RATE_HZ), np.float32)
    return np.concatenate([part for stimulus in stimuli for part in (gap, stimulus.samples)] + [gap])


# --- files -------------------------------------------------------------------------------------------------


def read_wav(path: Path) -> Samples:
    """Read a 16-bit wav as mono at 16 kHz."""
    with wave.open(str(path), "rb") as file:
        raw = np.frombuffer(file.readframes(file.getnframes()), dtype="<i2").astype(np.float32) / 32768.0
        rate_hz, channels = file.getframerate(), file.getnchannels()
    return _resampled(raw.reshape(-1, channels).mean(axis=1).astype(np.float32), rate_hz)


# --- parts -------------------------------------------------------------------------------------------------


def _band(sound: npt.NDArray[np.float64], low_hz: float, high_hz: float) -> npt.NDArray[np.float64]:
    spectrum = np.fft.rfft(sound)
    hz = np.fft.rfftfreq(len(sound), 1 / RATE_HZ)
    spectrum[(hz < low_hz) | (hz > high_hz)] = 0
    return np.asarray(np.fft.irfft(spectrum, len(sound)))


def _tap(rng: Rng, decay_s: float, low_hz: float, high_hz: float) -> npt.NDArray[np.float64]:
    length = int(RATE_HZ * decay_s * 6) + 64
    return _band(rng.standard_normal(length), low_hz, high_hz) * np.exp(-np.arange(length) / RATE_HZ / decay_s)


def _vowel(rng: Rng, pitch_hz: float, seconds: float, formants_hz: Sequence[float]) -> npt.NDArray[np.float64]:
    time_s = np.arange(int(RATE_HZ * seconds)) / RATE_HZ
    sound = np.zeros(len(time_s))
    for harmonic in range(1, int(3500 / pitch_hz)):
        hz = harmonic * pitch_hz
        gain = sum(1 / (1 + ((hz - formant) / 120) ** 2) for formant in formants_hz) / harmonic**0.5
        sound += gain * np.sin(2 * np.pi * hz * time_s + rng.uniform(0, 2 * np.pi))
    return np.asarray(sound * np.hanning(len(sound)))


def _add(sound: npt.NDArray[np.float64], at_s: float, part: npt.NDArray[np.float64]) -> None:
    begin = int(at_s * RATE_HZ)
    end = min(len(sound), begin + len(part))
    sound[begin:end] += part[: end - begin]


def _scaled(sound: npt.NDArray[np.floating], peak: float) -> Samples:
    return np.asarray(sound * (peak / max(1e-9, float(np.abs(sound).max()))), dtype=np.float32)


def _edges(length: int) -> Samples:
    ramp = np.ones(length, np.float32)
    ramp[:80] = np.linspace(0, 1, 80)
    ramp[-80:] = np.linspace(1, 0, 80)
    return ramp


def _resampled(samples: Samples, rate_hz: int) -> Samples:
    if rate_hz == RATE_HZ:
        return samples
    import soxr

    return np.asarray(soxr.resample(samples, rate_hz, RATE_HZ), dtype=np.float32)
