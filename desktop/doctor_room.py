"""`mynah doctor --room`: measures the user's room with the character's own voice and says what it means."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from audio.pcm import resample
from audio.ports import Samples
from audio.room_measure import RoomFigures, Track, joined, measure_room
from desktop.ears_numbers import ears_config
from desktop.models import ModelStore
from desktop.settings import Settings
from desktop.system_language import system_language
from orchestrator.clock import SystemClock
from orchestrator.contracts.errors import MynahError, PartFailed

if TYPE_CHECKING:
    from desktop.doctor import Finding

QUIET_S = 3.0
AFTER_S = 1.0
_LOOK_S = 0.1
_RATE_HZ = 48_000
NOISY_DB = -45.0
MUCH_ECHO_DB = -6.0
_LATE_S = 0.03
_EXPECTED_S = 0.01
CALM_PER_MINUTE = 1.0
_SAID = (
    "Please be quiet for a moment. I only want to hear myself in your room.",
    "Once upon a time there was a small bird that could repeat everything it heard, also the wind and the rain.",
    "One morning it heard a song from the other side of the river, and it decided to fly there at once.",
    "Do you want to hear how it goes? Another time, perhaps. Thank you for your patience!",
)

_TEXTS: dict[str, dict[str, str]] = {
    "en": {
        "start": "Please be quiet for about {seconds:.0f} seconds: first the room is heard, then the voice in it.",
        "noise": "noise of the room",
        "noise_ok": "{db:.0f} dBFS: quiet enough",
        "noise_warn": "{db:.0f} dBFS: loud; words may be missed or made up",
        "noise_tip": "move the microphone away from fans, or set “how easily it can be interrupted” to relaxed",
        "echo": "own voice in the microphone",
        "echo_none": "it does not get there: headphones, or a silent loudspeaker",
        "echo_ok": "{db:.0f} dB of what is played: a normal loudspeaker",
        "echo_warn": "{db:.0f} dB of what is played: very loud",
        "echo_tip": "turn the loudspeaker down or move it away from the microphone",
        "delay": "delay",
        "delay_unknown": "could not be measured",
        "delay_ok": "{ms:.0f} ms later than the devices say: nothing to do",
        "delay_warn": "{ms:.0f} ms later than the devices say (Bluetooth is often so)",
        "delay_tip": "set the extra output delay to {ms:.0f} ms (extra_output_delay_ms)",
        "cancel": "echo cancellation",
        "cancel_none": "nothing to do",
        "cancel_ok": "takes out {db:.0f} dB: it can be interrupted by voice while it talks",
        "cancel_fail": "takes out only {db:.0f} dB: while it talks, only Stop or a key interrupts, not your voice",
        "cancel_tip": "turn off effects of the sound driver (surround, noise suppression), or use another device",
        "own": "own voice taken for you",
        "own_ok": "lowered {ducks} times, cut off {cuts} times in {seconds:.0f} s",
        "own_warn": "lowered {ducks} times, cut off {cuts} times in {seconds:.0f} s: it will stumble over itself",
        "own_tip": "turn the loudspeaker down, or set “how easily it can be interrupted” to relaxed",
        "failed": "the room could not be measured",
    },
    "zh": {
        "start": "请安静大约 {seconds:.0f} 秒：先听房间，再听房间里自己的声音。",
        "noise": "房间噪声",
        "noise_ok": "{db:.0f} dBFS：足够安静",
        "noise_warn": "{db:.0f} dBFS：太吵，话可能听漏或听错",
        "noise_tip": "让麦克风远离风扇，或把“打断的难易”设为不易打断",
        "echo": "麦克风里自己的声音",
        "echo_none": "听不到：用的是耳机，或扬声器没有声音",
        "echo_ok": "是播放声音的 {db:.0f} dB：正常的扬声器",
        "echo_warn": "是播放声音的 {db:.0f} dB：太响",
        "echo_tip": "把扬声器调小，或离麦克风远一些",
        "delay": "延迟",
        "delay_unknown": "测不出来",
        "delay_ok": "比设备报告的晚 {ms:.0f} 毫秒：不用处理",
        "delay_warn": "比设备报告的晚 {ms:.0f} 毫秒（蓝牙常常这样）",
        "delay_tip": "把额外输出延迟设为 {ms:.0f} 毫秒（extra_output_delay_ms）",
        "cancel": "回声消除",
        "cancel_none": "不需要",
        "cancel_ok": "消除了 {db:.0f} dB：它说话时可以用声音打断",
        "cancel_fail": "只消除了 {db:.0f} dB：它说话时不能用声音打断，只能用“停止”或按键",
        "cancel_tip": "关闭声卡驱动的音效（环绕声、降噪），或换一个设备",
        "own": "把自己的声音当成你",
        "own_ok": "{seconds:.0f} 秒里压低 {ducks} 次，中断 {cuts} 次",
        "own_warn": "{seconds:.0f} 秒里压低 {ducks} 次，中断 {cuts} 次：它会被自己打断",
        "own_tip": "把扬声器调小，或把“打断的难易”设为不易打断",
        "failed": "无法测量房间",
    },
}


class RoomDevices(Protocol):
    """A microphone and a loudspeaker. `play` plays 48 kHz samples and returns what was heard and what was played."""

    def play(self, samples: Samples) -> tuple[Track, Track]:
        """Play to the end. Raises `PartFailed` where a device is missing or falls silent."""
        ...


class SoundCard:
    """The devices of the settings."""

    def __init__(
        self,
        settings: Settings,
        *,
        on_progress: Callable[[float], None] = lambda played_s: None,
        cancelled: threading.Event | None = None,
    ) -> None:
        """Use the devices that a conversation would use; `on_progress` hears now and then how much was played."""
        self._settings = settings
        self._on_progress = on_progress
        self._cancelled = cancelled or threading.Event()

    def play(self, samples: Samples) -> tuple[Track, Track]:
        """Play to the end. Raises `PartFailed` where a device is missing or falls silent."""
        from audio.devices import CaptureStream, PlaybackStream, choose_input, choose_output, list_devices

        clock = SystemClock()
        found = list_devices()
        output = choose_output(found, self._settings.output_device)
        microphone = choose_input(found, self._settings.input_device, output)
        heard: list[tuple[Samples, float]] = []
        played: list[tuple[Samples, float]] = []
        over = threading.Event()
        pcm = samples
        place = 0

        def render(out: Samples, at_s: float) -> None:
            nonlocal place
            part = pcm[place : place + len(out)]
            out[: len(part)] = part
            out[len(part) :] = 0.0
            place += len(out)
            played.append((out.copy(), at_s))
            if place >= len(pcm):
                over.set()

        def prepare(rate_hz: int) -> None:
            nonlocal pcm
            pcm = resample(samples, _RATE_HZ, rate_hz)

        capture = CaptureStream(lambda block, at_s: heard.append((block.copy(), at_s)), clock)
        playback = PlaybackStream(render, clock)
        try:
            capture.open(microphone)
            playback.open(output, prepare=prepare)
            limit_s = clock.monotonic_s() + len(samples) / _RATE_HZ + 5.0
            while not over.wait(_LOOK_S) and not self._cancelled.is_set() and clock.monotonic_s() < limit_s:
                self._on_progress(place / playback.rate_hz)
            if self._cancelled.is_set():
                raise PartFailed("room_cancelled", "given up", part="devices", recoverable=True)
            if not over.is_set():
                raise PartFailed("output_stalled", "the loudspeaker plays nothing", part="devices", recoverable=True)
        finally:
            playback.close()
            capture.close()
        if not heard:
            raise PartFailed("input_stalled", "the microphone gives nothing", part="devices", recoverable=True)
        return joined(heard, capture.rate_hz), joined(played, playback.rate_hz)


def voice_sample(settings: Settings, store: ModelStore) -> Samples:
    """Return silence, the character's voice as loud as in a conversation, and silence, at 48 kHz.

    Raises `MynahError` without a voice.
    """
    from desktop.sound_models import load_voices

    voices = load_voices(settings, store)
    if not voices:
        raise PartFailed("voice_missing", "there is no voice: `mynah models get`", part="tts", recoverable=True)
    language = "en" if voices[0].speaks("en") else "zh"
    said = [voices[0].synthesise(text, language=language) for text in _SAID]
    gap: Samples = np.zeros(_RATE_HZ // 5, np.float32)
    parts: list[Samples] = [np.zeros(round(QUIET_S * _RATE_HZ), np.float32)]
    for each in said:
        parts += [resample(np.asarray(each.pcm, np.float32), each.rate_hz, _RATE_HZ), gap]
    return np.concatenate([*parts, np.zeros(round(AFTER_S * _RATE_HZ), np.float32)])


def room_main(
    settings: Settings,
    *,
    as_json: bool,
    devices: RoomDevices | None = None,
    sample: Callable[[], Samples] | None = None,
) -> int:
    """Measure and print; returns 0, 3 if it could not be measured."""
    language = language_of(settings)
    texts = _TEXTS[language]
    try:
        samples = sample() if sample is not None else voice_sample(settings, ModelStore())
        sys.stderr.write(texts["start"].format(seconds=len(samples) / _RATE_HZ) + "\n")
        sys.stderr.flush()
        microphone, loudspeaker = (devices or SoundCard(settings)).play(samples)
        figures = measure_room(microphone, loudspeaker, config=ears_config(settings))
    except MynahError as error:
        sys.stderr.write(f"{texts['failed']}: {error.message}\n")
        return 3
    findings = explain(figures, language)
    if as_json:
        body = {"findings": [asdict(each) for each in findings], "room": asdict(figures)}
        sys.stdout.write(json.dumps(body, ensure_ascii=False, indent=2) + "\n")
    else:
        for each in findings:
            advice = f"      → {each.advice}\n" if each.advice else ""
            sys.stdout.write(f"{each.status:4}  {each.part}: {each.text}\n{advice}")
    return 0


def language_of(settings: Settings) -> str:
    """Return the language of the report: the window's, else the system's."""
    if settings.ui_language != "auto":
        return "zh" if settings.ui_language.startswith("zh") else "en"
    return system_language()


def explain(figures: RoomFigures, language: str) -> list[Finding]:
    """Return what the figures mean, in plain words."""
    from desktop.doctor import Finding

    texts = _TEXTS[language]

    def finding(part: str, text: str, status: str = "ok", advice: str = "", **values: float) -> Finding:
        return Finding(
            status=status,
            part=texts[part],
            text=texts[text].format(**values),
            advice=texts[advice].format(**values) if advice else "",
        )

    is_noisy = figures.noise_db > NOISY_DB
    found = [
        finding("noise", "noise_warn", "warn", "noise_tip", db=figures.noise_db)
        if is_noisy
        else finding("noise", "noise_ok", db=figures.noise_db)
    ]
    if figures.coupling_db is None:
        found += [finding("echo", "echo_none"), finding("cancel", "cancel_none")]
    else:
        is_loud = figures.coupling_db > MUCH_ECHO_DB
        found.append(
            finding("echo", "echo_warn", "warn", "echo_tip", db=figures.coupling_db)
            if is_loud
            else finding("echo", "echo_ok", db=figures.coupling_db)
        )
        found.append(_delay(figures, finding))
        loss_db = figures.loss_db or 0.0
        found.append(
            finding("cancel", "cancel_fail", "warn", "cancel_tip", db=loss_db)
            if figures.is_half_duplex
            else finding("cancel", "cancel_ok", db=loss_db)
        )
    stumbles = figures.cuts > 0 or figures.ducks_per_minute > CALM_PER_MINUTE
    counts: dict[str, Any] = {"ducks": figures.ducks, "cuts": figures.cuts, "seconds": figures.talked_s}
    if stumbles:
        found.append(finding("own", "own_warn", "warn", "own_tip", **counts))
    else:
        found.append(finding("own", "own_ok", **counts))
    return found


def late_ms(figures: RoomFigures) -> int | None:
    """Return the extra output delay that fits, in whole milliseconds; 0 where the devices tell the truth."""
    if figures.delay_s is None:
        return None
    return round(1000 * figures.delay_s) if figures.delay_s > _LATE_S + _EXPECTED_S else 0


def _delay(figures: RoomFigures, finding: Callable[..., Finding]) -> Finding:
    late = late_ms(figures)
    if figures.delay_s is None or late is None:
        return finding("delay", "delay_unknown", "warn")
    if late:
        return finding("delay", "delay_warn", "warn", "delay_tip", ms=late)
    return finding("delay", "delay_ok", ms=max(0.0, 1000 * figures.delay_s))
