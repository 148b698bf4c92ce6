"""Half an hour of a character on loudspeakers, in virtual time: does it take its own voice for the user's?

The real voice, player and ears; rooms by image sources; real people who interrupt. Rooms, delays, drifts, a change of
volume, a moved device and a muted voice are all in there, in a run of any length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path as FilePath

import numpy as np
from bench.scorer import levels_db, voiced_span
from bench.stimuli import Recordings
from rigs.acoustics import Path, Place, image_source_response
from rigs.ears_rig import energy_onset_s
from rigs.loudspeaker_rig import Happened, LoudspeakerRig, Said, Tap, first_s

from audio.ears_config import EarsConfig
from audio.pcm import db_to_gain, resample
from audio.ports import Samples
from audio.simulated import MIC_RATE_HZ, OUT_RATE_HZ, active_rms

ECHO_DB = -6.0
LOUD_DB, QUIET_DB = -26.0, -38.0
_BEFORE_S = 1.0
_LONGEST_S = 2.0
_USER_EVERY_S = 9.0
_REACTION_S = 1.5
_CLEAR_S = 0.15
_BACK_S = 0.2
_SCRAP_S = 0.15
_PAUSE_S = 0.3
_SAID = (
    "Once upon a time there was a small bird that could repeat everything it heard.",
    "The wind was strong, so it had to rest twice.",
    "Do you want to hear how it goes?",
    "It will be mostly cloudy, with some rain in the afternoon, and about twelve degrees.",
    "You asked me to remind you of the dentist at half past four.",
    "The first one is a soup. The second one takes forty minutes in the oven.",
    "Sure. No problem.",
    "Mountains grow by a few millimetres every year, while rivers carry them back to the sea, grain by grain.",
    "Seven wizards quickly mixed a big jug of violet ink.",
    "That was a good question, and I am not certain that I know the answer.",
    "She sells sea shells by the sea shore!",
    "Let me think about it for a moment, or shall we talk about something else?",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A room, and what is different in it. `moved` is where the microphone is in the second half."""

    name: str
    place: Place
    moved: Place | None = None
    delay_s: float = 0.06
    drift_ppm: float = 0.0
    has_echo: bool = True


_STUDY = Place(rt60_s=0.35)
_BEDROOM = Place(rt60_s=0.2, microphone_m=(1.6, 1.5, 0.8))
_LIVING = Place(size_m=(6.0, 5.0, 2.8), speaker_m=(1.5, 2.0, 1.0), microphone_m=(2.3, 2.4, 0.8), rt60_s=0.5)
_TABLE = Place(size_m=(6.0, 5.0, 2.8), speaker_m=(1.5, 2.0, 1.0), microphone_m=(3.1, 2.6, 0.8), rt60_s=0.6)
SCENES = (
    Scene(name="study", place=_STUDY, delay_s=0.02),
    Scene(name="living room, the microphone is moved", place=_LIVING, moved=_TABLE, delay_s=0.1, drift_ppm=100.0),
    Scene(name="bedroom, Bluetooth", place=_BEDROOM, delay_s=0.25, drift_ppm=-100.0),
    Scene(name="large room", place=_TABLE, delay_s=0.06, drift_ppm=50.0),
    Scene(name="study, the microphone is moved", place=_STUDY, moved=_BEDROOM, delay_s=0.15, drift_ppm=-50.0),
)
HALLS = (
    Place(size_m=(9.0, 7.0, 3.5), speaker_m=(2.0, 2.0, 1.2), microphone_m=(6.0, 4.5, 1.0), rt60_s=0.8),
    Place(size_m=(9.0, 7.0, 3.5), speaker_m=(2.0, 2.0, 1.2), microphone_m=(3.5, 3.2, 1.0), rt60_s=0.8),
)
"""Rooms in which sound hangs longer than a canceller's filter lasts: the microphone 4.7 m and 1.9 m away."""
HEADPHONES = Scene(name="headphones", place=_STUDY, has_echo=False)


@dataclass(slots=True)
class Found:
    """What came of it. Times are seconds after the onset of the user's voice, by `language loudness`."""

    talked_s: float = 0.0
    own_cuts: int = 0
    own_utterances: int = 0
    own_ducks: int = 0
    half_duplex: int = 0
    users: int = 0
    unnoticed: list[str] = field(default_factory=list)
    own: list[str] = field(default_factory=list)
    down_s: dict[str, list[float]] = field(default_factory=dict)
    silent_s: dict[str, list[float]] = field(default_factory=dict)

    def all_down_s(self) -> list[float]:
        """Every time until the voice was lowered."""
        return [each for times in self.down_s.values() for each in times]

    def all_silent_s(self) -> list[float]:
        """Every time until there was silence."""
        return [each for times in self.silent_s.values() for each in times]


def character_speech(voice: FilePath, sentences: int = len(_SAID)) -> list[Samples]:
    """Let the Piper voice in a model file say some sentences; 48 kHz."""
    from audio.tts.piper_adapter import PiperSynthesiser

    synthesiser = PiperSynthesiser(voice, seed=3)
    said = [synthesiser.synthesise(text, language="en") for text in _SAID[:sentences]]
    return [resample(np.asarray(each.pcm, np.float32), each.rate_hz, OUT_RATE_HZ) for each in said]


def clear_utterances(recordings: Recordings, language: str) -> list[str]:
    """Return recordings whose onset is beyond doubt: two measures of it agree.

    A recording that begins with the rest of another sentence or with breath has no moment to count from: neither has
    one that begins with a scrap and a pause, for a scrap must not cut.
    """
    found = []
    for name in recordings.utterances(language, shortest_s=1.2, longest_s=6.0):
        samples = recordings.load(name, longest_s=_LONGEST_S).samples
        by_noise_s = voiced_span(samples, MIC_RATE_HZ).begin_s
        is_agreed = abs(by_noise_s - energy_onset_s(samples, MIC_RATE_HZ)) <= _CLEAR_S
        if is_agreed and not _begins_with_scrap(samples, by_noise_s):
            found.append(name)
    return found


def _begins_with_scrap(samples: Samples, begin_s: float) -> bool:
    """Whether less than `_SCRAP_S` of sound is followed by a pause of `_PAUSE_S`."""
    step = MIC_RATE_HZ // 100
    levels = levels_db(samples[round(begin_s * MIC_RATE_HZ) :], MIC_RATE_HZ, 0.01)
    quiet = levels < float(np.percentile(levels, 95)) - 25.0
    first = round(_SCRAP_S * MIC_RATE_HZ) // step
    return bool(quiet[first : first + round(_PAUSE_S * MIC_RATE_HZ) // step].all())


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnVoice:
    """A run of some length over all scenes; `sentences` are what the character says, over and over."""

    sentences: Sequence[Samples]
    recordings: Recordings
    seconds: float
    scenes: Sequence[Scene] = SCENES
    tap: Tap = Tap.PLAYED
    config: EarsConfig = field(default_factory=EarsConfig)
    tell: Callable[[str], None] = lambda text: None
    has_users: bool = True

    def run(self) -> Found:
        """Go through the scenes."""
        found = Found()
        for number, scene in enumerate(self.scenes):
            self._scene(scene, number, found)
        return found

    def _scene(self, scene: Scene, number: int, found: Found) -> None:
        length_s = self.seconds / len(self.scenes)
        voice_db = 20 * float(np.log10(active_rms(np.concatenate(self.sentences), OUT_RATE_HZ)))
        # All of it stands and falls with the ratio of user to echo, so a quiet user has a quiet room.
        user_db = LOUD_DB if number % 2 == 0 else QUIET_DB
        normal = Path(
            response=image_source_response(scene.place), delay_s=scene.delay_s, gain_db=user_db + ECHO_DB - voice_db
        )
        softer = Path(response=normal.response, delay_s=normal.delay_s, gain_db=normal.gain_db - 6.0)
        moved = Path(
            response=image_source_response(scene.moved or scene.place), delay_s=scene.delay_s, gain_db=normal.gain_db
        )
        turn = number % len(self.sentences)
        rig = LoudspeakerRig(
            sentences=[*self.sentences[turn:], *self.sentences[:turn]],
            path=normal,
            drift_ppm=scene.drift_ppm,
            noise_db=user_db - 42.0,
            config=self.config,
            tap=self.tap,
            has_echo=scene.has_echo,
            seed=number,
        )
        rig.is_talking = False
        rig.run(_BEFORE_S)
        rig.is_talking = True
        # Amplifier down and up, voice muted and back, microphone moved: each with talk before and after.
        part_s = length_s / 6
        steps: list[tuple[float, Callable[[], None]]] = [
            (part_s, lambda: rig.acoustics.change(softer)),
            (part_s, lambda: rig.acoustics.change(normal)),
            (part_s, lambda: rig.player.set_muted(True)),
            (min(part_s / 2, 8.0), lambda: rig.player.set_muted(False)),
            (part_s, lambda: rig.acoustics.change(moved)),
        ]
        said = self._said(rig.now_s, length_s, user_db, number) if self.has_users else []
        happened: list[Happened] = []
        muted_from_s = rig.now_s + 3 * part_s
        muted = (muted_from_s, muted_from_s + min(part_s / 2, 8.0) + 3.0)
        said = [each for each in said if not muted[0] - _LONGEST_S < each.at_s < muted[1]]
        sounds = [Said(at_s=each.at_s, samples=each.samples) for each in said]
        end_s = rig.now_s + length_s
        for seconds, change in steps:
            happened += rig.run(seconds, sounds)
            change()
        happened += rig.run(end_s - rig.now_s, sounds)
        self._judge(scene, happened, said, found)
        found.talked_s += length_s
        self.tell(
            f"{scene.name}: {length_s:.0f} s, own voice cut {found.own_cuts}, heard {found.own_utterances}, lowered "
            f"{found.own_ducks} so far; {found.users} users, unnoticed {found.unnoticed}"
        )

    def _said(self, begin_s: float, length_s: float, user_db: float, number: int) -> list[_User]:
        names = {language: clear_utterances(self.recordings, language) for language in ("en", "zh")}
        chance = np.random.default_rng(number)
        found: list[_User] = []
        at_s = begin_s + 2.5
        while at_s < begin_s + length_s - _LONGEST_S - _REACTION_S:
            count = len(found) + 100 * number
            language = ("en", "zh")[count % 2]
            stimulus = self.recordings.load(names[language][count // 2 % len(names[language])], longest_s=_LONGEST_S)
            gain = db_to_gain(user_db - 20 * float(np.log10(active_rms(stimulus.samples, MIC_RATE_HZ))))
            samples = (stimulus.samples * np.float32(gain)).astype(np.float32)
            samples[-160:] *= np.linspace(1, 0, 160, dtype=np.float32)
            onset_s = at_s + voiced_span(samples, MIC_RATE_HZ).begin_s
            loudness = "loud" if user_db == LOUD_DB else "quiet"
            found.append(
                _User(at_s=at_s, samples=samples, onset_s=onset_s, key=f"{language} {loudness}", name=stimulus.name)
            )
            at_s += _USER_EVERY_S + float(chance.uniform(0.0, 3.0))
        return found

    def _judge(self, scene: Scene, happened: Sequence[Happened], said: Sequence[_User], found: Found) -> None:
        def is_own(event: Happened) -> bool:
            # An onset is dated back to where the sound began, which may be breath before the word.
            return not any(user.at_s - _BACK_S <= event.at_s <= user.end_s + _REACTION_S for user in said)

        found.own += [f"{each.what} at {each.at_s:.2f} s, {scene.name}" for each in happened if is_own(each)]
        own = [event.what for event in happened if is_own(event)]
        found.own_cuts += own.count("interrupt")
        found.own_utterances += own.count("onset")
        found.own_ducks += own.count("duck")
        found.half_duplex += sum(event.what == "half_duplex" for event in happened)
        for user in said:
            found.users += 1
            mine = [event for event in happened if user.onset_s - 0.1 <= event.at_s <= user.end_s + 0.3]
            down_s = first_s(mine, "duck", "cut", "interrupt", after_s=user.onset_s - 0.1)
            silent_s = first_s(mine, "silent", after_s=user.onset_s)
            if silent_s is None:
                # Cut between two sentences: it was silent already.
                silent_s = first_s(mine, "interrupt", after_s=user.onset_s)
            if down_s is None or silent_s is None:
                found.unnoticed.append(f"{user.name} ({user.key}, {scene.name}, at {user.at_s:.1f} s)")
                continue
            found.down_s.setdefault(user.key, []).append(max(0.0, down_s - user.onset_s))
            found.silent_s.setdefault(user.key, []).append(silent_s - user.onset_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class _User:
    at_s: float
    samples: Samples
    onset_s: float
    key: str
    name: str

    @property
    def end_s(self) -> float:
        return self.at_s + len(self.samples) / MIC_RATE_HZ
