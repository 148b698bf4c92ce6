"""A virtual sound card: a private PulseAudio with a microphone the test speaks into and a loudspeaker it records.

The program under test sees the devices `pulse` and `default`; give it `rig.env`.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import wave
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

Samples = npt.NDArray[np.float32]

TOOLS = ("pulseaudio", "pactl", "pacmd", "paplay", "parec")
_START_TIMEOUT_S = 10.0

# Without norewinds the first stream stalls for more than a second.
_CONFIG = """\
load-module module-cli-protocol-unix
load-module module-native-protocol-unix auth-anonymous=1 socket={socket}
load-module module-null-sink sink_name=speaker rate=48000 channels=2 norewinds=1
load-module module-null-sink sink_name=mic_in rate=48000 channels=1 norewinds=1
load-module module-remap-source master=mic_in.monitor source_name=mic
set-default-sink speaker
set-default-source mic
"""


def missing_tools() -> list[str]:
    """Return the programs the rig needs that are not installed."""
    return [tool for tool in TOOLS if shutil.which(tool) is None]


class Recording:
    """A running recording. Its own thread reads until `stop`."""

    def __init__(self, process: subprocess.Popen[bytes], rate_hz: int) -> None:
        self.rate_hz = rate_hz
        self._process = process
        self._data = bytearray()
        self._start_s: float | None = None
        self._first = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._read, name="rig-recording", daemon=True)
        self._thread.start()

    @property
    def start_s(self) -> float:
        """Monotonic time of the first sample.

        Each block that arrives bounds it from above (arrival minus what was recorded so far); the least bound counts,
        so that a late reader does not shift it. Right to about the latency of the stream, 5 ms.
        """
        with self._lock:
            assert self._start_s is not None, "nothing was recorded yet"
            return self._start_s

    def wait_started(self, timeout_s: float = 5.0) -> None:
        """Block until the first sample has arrived."""
        assert self._first.wait(timeout_s), "the recording does not start"

    def samples(self) -> Samples:
        """Return what was recorded so far, float32 mono in -1..1."""
        with self._lock:
            whole = len(self._data) - len(self._data) % 2
            return np.frombuffer(bytes(self._data[:whole]), dtype="<i2").astype(np.float32) / 32768.0

    def since(self, at_s: float) -> Samples:
        """Return what was recorded from the monotonic time `at_s` on."""
        start = max(0, round((at_s - self.start_s) * self.rate_hz))
        return self.samples()[start:]

    def wait_for_sound(self, *, after_s: float, level_db: float = -45.0, timeout_s: float = 20.0) -> float:
        """Block until 10 ms after `after_s` are louder than `level_db` (dBFS, RMS); return their monotonic time."""
        deadline = time.monotonic() + timeout_s
        block = self.rate_hz // 100
        while time.monotonic() < deadline:
            part = self.since(after_s)
            count = len(part) // block
            if count:
                rms = np.sqrt(np.mean(part[: count * block].reshape(count, block) ** 2, axis=1))
                loud = np.flatnonzero(rms > 10 ** (level_db / 20))
                if len(loud):
                    return after_s + float(loud[0]) * block / self.rate_hz
            time.sleep(0.02)
        raise AssertionError(f"no sound within {timeout_s} s")

    def stop(self) -> Samples:
        """End the recording and return all of it."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(timeout=2)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._thread.join(timeout=5)
        return self.samples()

    def save(self, path: Path) -> None:
        """Write what was recorded so far as a 16-bit wav."""
        write_wav(path, self.samples(), self.rate_hz)

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as stream:
            while chunk := os.read(stream.fileno(), 65536):
                now_s = time.monotonic()
                with self._lock:
                    self._data += chunk
                    bound = now_s - len(self._data) / 2 / self.rate_hz
                    self._start_s = bound if self._start_s is None else min(self._start_s, bound)
                self._first.set()


@dataclass
class SoundRig:
    """The virtual sound card. Use it as a context manager; one per test run."""

    folder: Path = field(init=False)
    env: dict[str, str] = field(init=False)
    _server: subprocess.Popen[bytes] | None = field(init=False, default=None)
    _echo_module: str | None = field(init=False, default=None)
    _playing: list[subprocess.Popen[bytes]] = field(init=False, default_factory=list)
    _recordings: list[Recording] = field(init=False, default_factory=list)

    def __enter__(self) -> SoundRig:
        # A short path: the name of a socket may have no more than 107 bytes.
        self.folder = Path(tempfile.mkdtemp(prefix="mynah-rig-"))
        self.folder.chmod(0o700)
        self.start_server()
        return self

    def __exit__(self, *_: object) -> None:
        self.reset()
        self.stop_server()
        shutil.rmtree(self.folder, ignore_errors=True)

    # --- the server ---------------------------------------------------------------------------------------------------

    def start_server(self) -> None:
        """Start the sound server and wait until its devices are there."""
        (self.folder / "pulse").mkdir(mode=0o700, exist_ok=True)
        socket = self.folder / "pulse" / "native"
        config = self.folder / "rig.pa"
        config.write_text(_CONFIG.format(socket=socket), encoding="utf-8")
        base = {name: value for name, value in os.environ.items() if not name.startswith("PULSE_")}
        own = {"XDG_RUNTIME_DIR": str(self.folder), "PULSE_RUNTIME_PATH": str(self.folder / "pulse")}
        log = (self.folder / "server.log").open("ab")
        with log:
            self._server = subprocess.Popen(
                ["pulseaudio", "-n", "-F", str(config), "--daemonize=no", "--exit-idle-time=-1"],
                env={**base, **own},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.env = {**own, "PULSE_SERVER": f"unix:{socket}"}
        deadline = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < deadline:
            if self._server.poll() is not None:
                break
            if socket.exists() and "mic\t" in self._try("pactl", "list", "short", "sources"):
                return
            time.sleep(0.05)
        raise RuntimeError(f"the sound server does not start: {(self.folder / 'server.log').read_text()[-500:]}")

    def stop_server(self) -> None:
        """Kill the sound server, as when the sound system of a machine dies."""
        if self._server is not None and self._server.poll() is None:
            self._server.terminate()
            try:
                self._server.wait(timeout=3)
            except subprocess.TimeoutExpired:
                self._server.kill()
                self._server.wait()
        self._server = None
        self._echo_module = None

    def reset(self) -> None:
        """End what plays and records, and the echo, so that the next test finds silence."""
        for process in self._playing:
            if process.poll() is None:
                process.terminate()
            process.wait()
        self._playing.clear()
        for recording in self._recordings:
            recording.stop()
        self._recordings.clear()
        if self._server is not None:
            self.set_echo(None)
            self._try("pactl", "suspend-source", "mic", "0")

    # --- speak and listen ---------------------------------------------------------------------------------------------

    def speak(self, wav: Path, *, wait: bool = True) -> subprocess.Popen[bytes]:
        """Play a wav into the microphone; `wait` blocks until it was played out."""
        process = self._play("mic_in", wav)
        if wait:
            assert process.wait() == 0, f"paplay could not play {wav.name}"
        return process

    def play_on_speaker(self, wav: Path, *, wait: bool = True) -> subprocess.Popen[bytes]:
        """Play a wav on the loudspeaker, as another program would."""
        process = self._play("speaker", wav)
        if wait:
            assert process.wait() == 0, f"paplay could not play {wav.name}"
        return process

    def record(self, *, source: str = "speaker.monitor", rate_hz: int = 16_000) -> Recording:
        """Start recording and return once samples arrive.

        `speaker.monitor` is what is heard, `mic` what the program hears.
        """
        command = ["parec", f"--device={source}", "--latency-msec=5", "--raw", "--format=s16le", f"--rate={rate_hz}"]
        process = subprocess.Popen(
            [*command, "--channels=1"], env=self._client_env(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        recording = Recording(process, rate_hz)
        self._recordings.append(recording)
        recording.wait_started()
        return recording

    # --- echo and faults ----------------------------------------------------------------------------------------------

    def set_echo(self, db: float | None, delay_ms: int = 40) -> None:
        """Let the microphone hear the loudspeaker `db` (≤ 0) louder, after `delay_ms` plus the devices' own delay.

        None ends the echo.
        """
        if self._echo_module is not None:
            self._try("pactl", "unload-module", self._echo_module)
            self._echo_module = None
        if db is None:
            return
        options = ["source=speaker.monitor", "sink=mic_in", "source_dont_move=true", "sink_dont_move=true"]
        self._echo_module = self._run("pactl", "load-module", "module-loopback", f"latency_msec={delay_ms}", *options)
        for index, text in self._listed("sink-inputs"):
            if f"Owner Module: {self._echo_module}" in text:
                self._run("pactl", "set-sink-input-volume", index, f"{10 ** (db / 20):.5f}")
                return
        raise RuntimeError("the echo has no stream")

    def kill_streams(self, direction: str) -> int:
        """Cut the streams of programs as an unplugged device does; `direction` is input or output. Return how many."""
        kind, command = {
            "input": ("source-outputs", "kill-source-output"),
            "output": ("sink-inputs", "kill-sink-input"),
        }[direction]
        own = {str(process.pid) for process in self._playing}
        own |= {str(recording._process.pid) for recording in self._recordings}
        killed = 0
        for index, text in self._listed(kind):
            client = re.search(r'application\.process\.id = "(\d+)"', text)
            if client is not None and client[1] not in own:
                self._run("pacmd", command, index)
                killed += 1
        return killed

    def suspend_microphone(self, on: bool) -> None:
        """Stall the microphone: its stream stays open and delivers nothing."""
        self._run("pactl", "suspend-source", "mic", "1" if on else "0")

    # --- helpers ------------------------------------------------------------------------------------------------------

    def _play(self, sink: str, wav: Path) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            ["paplay", f"--device={sink}", "--latency-msec=20", str(wav)],
            env=self._client_env(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._playing.append(process)
        return process

    def _client_env(self) -> dict[str, str]:
        # The output of pactl is read: it must not be translated.
        return {**os.environ, **self.env, "LC_ALL": "C.UTF-8"}

    def _listed(self, kind: str) -> list[tuple[str, str]]:
        parts = re.split(r"^(?:Sink Input|Source Output) #(\d+)$", self._run("pactl", "list", kind), flags=re.M)
        return list(zip(parts[1::2], parts[2::2], strict=True))

    def _run(self, *command: str) -> str:
        done = subprocess.run(command, env=self._client_env(), capture_output=True, text=True, timeout=10, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
        return done.stdout.strip()

    def _try(self, *command: str) -> str:
        try:
            return self._run(*command)
        except (RuntimeError, subprocess.TimeoutExpired):
            return ""


def write_wav(path: Path, samples: Samples, rate_hz: int) -> Path:
    """Write float32 mono samples in -1..1 as a 16-bit wav and return its path."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate_hz)
        file.writeframes((np.clip(samples, -1.0, 1.0) * 32767).astype("<i2").tobytes())
    return path


def rms_db(samples: Samples) -> float:
    """Return the RMS level in dBFS; silence is -120."""
    return 20 * float(np.log10(max(1e-6, float(np.sqrt(np.mean(samples**2)))))) if len(samples) else -120.0
