"""Real PortAudio on the virtual sound card."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

import numpy as np
import pytest
from rigs.sound_rig import SoundRig, rms_db, write_wav

from audio import devices
from audio.device_manager import DeviceManager
from audio.playback import Player
from audio.player_render import Segment
from audio.tts.timing import estimate_words
from orchestrator.clock import SystemClock
from orchestrator.contracts.errors import InputError
from orchestrator.contracts.events import DeviceStateChanged, OutputCut, OutputFirstSound, OutputResume, OutputWord

pytestmark = pytest.mark.audio
TEXT = "one two three four five six seven eight nine ten"


class Sink:
    def __init__(self):
        self.events = []

    def post(self, event):
        self.events.append(event)
        return True

    def of(self, kind):
        return [event.payload for event in self.events if isinstance(event.payload, kind)]

    def states(self, direction):
        return [payload.state for payload in self.of(DeviceStateChanged) if payload.direction == direction]


class Live:
    """A player and a microphone on the rig, polled by the test."""

    def __init__(self, **names):
        devices.rescan()
        self.clock = SystemClock()
        self.sink = Sink()
        self.player = Player(rate_hz=48_000, clock=self.clock, events=self.sink)
        self.blocks: list[tuple[float, np.ndarray]] = []
        self.manager = DeviceManager(
            clock=self.clock,
            events=self.sink,
            on_block=lambda block, at_s: self.blocks.append((at_s, block.copy())),
            render=self.player.render,
            on_output_opening=self.player.attach,
            on_output_lost=self.player.detach,
            on_underflow=self.player.note_underflow,
            **names,
        )

    def until(self, condition, timeout_s=10.0):
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            now_s = self.clock.monotonic_s()
            self.player.poll(now_s)
            self.manager.check(now_s)
            if condition():
                return
            time.sleep(0.005)
        raise AssertionError(f"not within {timeout_s} s; {self.sink.of(DeviceStateChanged)}")

    def wait(self, seconds):
        end_s = self.clock.monotonic_s() + seconds
        self.until(lambda: self.clock.monotonic_s() >= end_s)

    def heard(self):
        return [word.text for word in self.sink.of(OutputWord) if not word.cut]

    def say(self, name="i-1", duration_s=3.0):
        rate = self.player.rate_hz
        t = np.arange(round(duration_s * rate)) / rate
        pcm = (0.4 * np.sin(2 * np.pi * 440.0 * t)).astype(np.float32)
        words = estimate_words(TEXT, start_s=0.0, end_s=duration_s)
        assert self.player.enqueue(
            Segment(intent_id=name, generation_id="g-1", text=TEXT, pcm=pcm, rate_hz=rate, words=words)
        )


@pytest.fixture
def live(sound_rig: SoundRig) -> Iterator[Live]:
    made = Live()
    made.manager.open()
    yield made
    made.manager.close()


def loud(samples, rate_hz):
    """Return begin and end of every stretch that sounds, in seconds, with gaps over 30 ms between."""
    places = np.flatnonzero(np.abs(samples) > 0.01)
    if not len(places):
        return []
    cuts = np.flatnonzero(np.diff(places) > 0.03 * rate_hz)
    starts = [places[0], *places[cuts + 1]]
    ends = [*places[cuts], places[-1]]
    return [(a / rate_hz, b / rate_hz) for a, b in zip(starts, ends, strict=True)]


def test_devices_are_listed_with_their_defaults(sound_rig):
    devices.rescan()
    found = devices.list_devices()
    assert {"pulse", "default"} <= {device.name for device in found}
    assert [device.name for device in found if device.is_default_output] == ["default"]


def test_an_unknown_device_is_refused_at_start(sound_rig):
    for names in ({"input_name": "Nope"}, {"output_name": "Nope"}):
        made = Live(**names)
        with pytest.raises(InputError, match=r"unknown (input|output) device 'Nope'; there are: .*pulse"):
            made.manager.open()
        made.manager.close()
        assert not made.manager.playback.is_open


def test_what_is_played_is_heard_when_the_events_say(live, sound_rig):
    recording = sound_rig.record(rate_hz=48_000)
    live.wait(0.5)
    live.say(duration_s=1.0)
    live.until(lambda: len(live.heard()) == 10)
    live.wait(0.2)
    [first] = live.sink.of(OutputFirstSound)
    stretches = loud(recording.stop(), 48_000)
    # A hole the device reported tears the sound; then, too, the times have to be right.
    assert len(stretches) == 1 or live.player.underflows
    start_s, end_s = stretches[0][0], stretches[-1][1]
    assert recording.start_s + start_s == pytest.approx(first.at_s, abs=0.03)
    last = live.sink.of(OutputWord)[-1]
    assert recording.start_s + end_s == pytest.approx(last.end_s, abs=0.03)


def test_a_cut_is_silent_at_the_loudspeaker_within_60_ms_and_resumes(live, sound_rig):
    recording = sound_rig.record(rate_hz=48_000)
    live.wait(0.5)
    live.say(duration_s=3.0)
    live.wait(1.0)
    cut_s = live.clock.monotonic_s()
    assert live.player.cut() == "g-1"
    live.wait(0.6)
    live.player.resume("g-1")
    live.until(lambda: len(live.heard()) == 10)
    live.wait(0.2)
    stretches = loud(recording.stop(), 48_000)
    assert len(stretches) == 2 or live.player.underflows
    silence = max(itertools.pairwise(stretches), key=lambda pair: pair[1][0] - pair[0][1])
    first_end, again_start = silence[0][1], silence[1][0]
    assert recording.start_s + first_end - cut_s < 0.06
    [cut] = live.sink.of(OutputCut)
    assert recording.start_s + first_end == pytest.approx(cut.last_sample_at_s, abs=0.03)
    [resume] = live.sink.of(OutputResume)
    assert recording.start_s + again_start == pytest.approx(resume.at_s, abs=0.03)
    assert resume.repeated_words == 1
    assert live.heard() == TEXT.split()


def test_the_microphone_gives_steady_blocks_of_10_ms_with_their_time(live, sound_rig, tmp_path):
    live.wait(0.5)
    t = np.arange(16_000) / 16_000
    wav = write_wav(tmp_path / "tone.wav", (0.5 * np.sin(2 * np.pi * 500 * t)).astype(np.float32), 16_000)
    sound_rig.speak(wav)
    live.wait(0.2)
    heard = [at_s for at_s, block in live.blocks if rms_db(block) > -20.0]
    # On a busy machine the stimulus itself may come with a gap.
    assert 0.9 < heard[-1] - heard[0] < 1.4
    assert {len(block) for _, block in live.blocks} == {live.manager.capture.rate_hz // 100}
    steps = np.diff([at_s for at_s, _ in live.blocks])
    assert np.median(steps) == pytest.approx(0.01, abs=0.0005)
    assert (steps > 0).all()


def test_a_lost_loudspeaker_is_replaced_and_the_sentence_goes_on(live, sound_rig):
    live.wait(0.3)
    live.say(duration_s=3.0)
    live.wait(1.0)
    assert sound_rig.kill_streams("output") >= 1
    live.until(lambda: live.sink.states("output")[:3] == ["opened", "lost", "opened"])
    live.until(lambda: len(live.heard()) == 10)
    assert live.heard() == TEXT.split()


def test_a_microphone_that_stalls_is_noticed_and_reopened(live, sound_rig):
    live.wait(0.3)
    sound_rig.suspend_microphone(True)
    live.until(lambda: "lost" in live.sink.states("input"))
    [lost] = [p for p in live.sink.of(DeviceStateChanged) if p.state == "lost"]
    assert lost.reason == "stalled"
    sound_rig.suspend_microphone(False)
    live.until(lambda: live.sink.states("input")[-1] == "opened", timeout_s=20.0)
    count = len(live.blocks)
    live.until(lambda: len(live.blocks) > count + 20)


def test_when_the_sound_system_dies_and_comes_back_so_does_the_voice(live, sound_rig):
    live.wait(0.3)
    live.say(duration_s=2.0)
    live.wait(0.5)
    sound_rig.stop_server()
    live.until(lambda: "lost" in live.sink.states("output"))
    live.wait(0.5)
    sound_rig.start_server()
    live.until(lambda: live.sink.states("output")[-1] == "opened", timeout_s=25.0)
    live.until(lambda: len(live.heard()) == 10)
    assert live.heard() == TEXT.split()
