"""The simplest voice program there is: it talks once it was spoken to, and stops at any sound.

For tests of benches that know a program by its sound alone. It uses the sound server's own tools, no library.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import deque

import numpy as np

RATE_HZ = 16_000
_BLOCK = RATE_HZ // 50
_LOUD = 0.01
_STOP_AFTER = 8
_ANSWER_AFTER = 25
_TALK_S = 30


def _speech_like() -> bytes:
    """Half a minute of syllables: a buzz that swells four times a second."""
    time_s = np.arange(RATE_HZ * _TALK_S) / RATE_HZ
    buzz = np.sign(np.sin(2 * np.pi * 120 * time_s)) * (0.6 + 0.4 * np.sin(2 * np.pi * 4 * time_s))
    return (buzz * 3000).astype("<i2").tobytes()


def main() -> int:
    """Run until the microphone or the process ends."""
    common = ["--raw", "--format=s16le", f"--rate={RATE_HZ}", "--channels=1", "--latency-msec=20"]
    microphone = subprocess.Popen(["parec", *common], stdout=subprocess.PIPE)
    assert microphone.stdout is not None
    answer = _speech_like()
    voice: subprocess.Popen[bytes] | None = None
    recent: deque[bool] = deque(maxlen=_STOP_AFTER)
    quiet, was_spoken_to = 0, False
    while block := microphone.stdout.read(2 * _BLOCK):
        samples = np.frombuffer(block, "<i2").astype(np.float32) / 32768.0
        is_loud = bool(np.sqrt(np.mean(samples**2)) > _LOUD)
        recent.append(is_loud)
        quiet = 0 if is_loud else quiet + 1
        if voice is not None and voice.poll() is not None:
            voice = None
        if sum(recent) >= _STOP_AFTER:
            was_spoken_to = True
            if voice is not None:
                voice.kill()
                voice.wait()
                voice = None
        if was_spoken_to and quiet >= _ANSWER_AFTER and voice is None:
            was_spoken_to = False
            voice = subprocess.Popen(["pacat", *common], stdin=subprocess.PIPE)
            threading.Thread(target=_say, args=(voice, answer), daemon=True).start()
    return 0


def _say(voice: subprocess.Popen[bytes], answer: bytes) -> None:
    assert voice.stdin is not None
    try:
        voice.stdin.write(answer)
        voice.stdin.close()
    except OSError:
        # It was cut off.
        return


if __name__ == "__main__":
    sys.exit(main())
