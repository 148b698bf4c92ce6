"""`mynah devices`, `mynah say` and `mynah transcribe`."""

from __future__ import annotations

import argparse
import json
import sys
import threading
from dataclasses import asdict
from pathlib import Path

from desktop.models import ModelStore
from desktop.options import add_common_options, run_options
from orchestrator.clock import SystemClock
from orchestrator.contracts.errors import InputError, PartFailed


def devices_main(argv: list[str]) -> int:
    """List microphones and loudspeakers."""
    from audio.devices import list_devices

    parser = argparse.ArgumentParser(prog="mynah devices", description="List microphones and loudspeakers.")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args(argv)
    found = list_devices()
    if args.json:
        print(json.dumps([asdict(device) for device in found], ensure_ascii=False, indent=2))
        return 0
    for heading, is_default, channels in (
        ("microphones", "is_default_input", "inputs"),
        ("loudspeakers", "is_default_output", "outputs"),
    ):
        print(heading)
        rows = [device for device in found if getattr(device, channels) > 0]
        for device in rows:
            mark = "*" if getattr(device, is_default) else " "
            bluetooth = ", Bluetooth" if device.is_bluetooth else ""
            print(f" {mark} {device.index:>2}  {device.name}  ({device.host_api}, {device.rate_hz} Hz{bluetooth})")
        if not rows:
            print("   none")
    return 0


def say_main(argv: list[str]) -> int:
    """Speak a text through the loudspeaker, or into a file."""
    parser = argparse.ArgumentParser(prog="mynah say", description="Speak a text.")
    parser.add_argument("text", nargs="*", help="what to say")
    parser.add_argument("--voices", action="store_true", help="list the installed voices instead")
    parser.add_argument("--out", type=Path, metavar="WAV", help="write a sound file instead of playing")
    add_common_options(parser)
    args = parser.parse_args(argv)
    options = run_options(args, strict=True)
    from audio.tts.voice import spoken_language
    from desktop.sound_models import installed_voices, load_voices

    if args.voices:
        store = ModelStore()
        for name in installed_voices(store):
            mark = "*" if name == options.settings.voice else " "
            print(f" {mark} {name}  ({', '.join(store.catalogue.models[name].languages)})")
        return 0
    text = " ".join(args.text).strip()
    if not text:
        raise InputError("text_missing", "there is nothing to say")
    voices = load_voices(options.settings, ModelStore())
    language = spoken_language(text, args.language)
    voice = next((voice for voice in voices if voice.speaks(language)), None)
    if voice is None:
        raise InputError("voice_language", f"no installed voice speaks {language}; see mynah models list", part="tts")
    said = voice.synthesise(text, language=language)
    if args.out is not None:
        from audio.pcm import write_wav

        write_wav(args.out, said.pcm, said.rate_hz)
        return 0
    _play(said.pcm, said.rate_hz, options.settings.output_device)
    return 0


def _play(pcm: object, rate_hz: int, name: str | None) -> None:
    import numpy as np

    from audio.devices import PlaybackStream, choose_output, list_devices
    from audio.pcm import resample
    from audio.ports import Samples

    device = choose_output(list_devices(), name)
    over = threading.Event()
    sound: Samples = np.asarray(pcm, np.float32)
    place = 0
    converted: Samples = sound

    def prepare(device_rate_hz: int) -> None:
        nonlocal converted
        tail = np.zeros(device_rate_hz // 4, np.float32)
        converted = np.concatenate([resample(sound, rate_hz, device_rate_hz), tail])

    def render(out: Samples, _at_s: float) -> None:
        nonlocal place
        part = converted[place : place + len(out)]
        out[: len(part)] = part
        out[len(part) :] = 0.0
        place += len(out)
        if place >= len(converted):
            over.set()

    stream = PlaybackStream(render, SystemClock())
    stream.open(device, prepare=prepare)
    try:
        if not over.wait(len(sound) / rate_hz + 10.0):
            raise PartFailed("output_stalled", "the loudspeaker took no sound", part="devices")
    finally:
        stream.close()


def transcribe_main(argv: list[str]) -> int:
    """Print what is said in a sound file."""
    parser = argparse.ArgumentParser(prog="mynah transcribe", description="Recognise a sound file.")
    parser.add_argument("file", type=Path, help="a wav file")
    parser.add_argument("--json", action="store_true", help="print JSON with language, times and confidence")
    add_common_options(parser)
    args = parser.parse_args(argv)
    options = run_options(args, strict=True)
    from audio.stt.chinese import ChineseScript
    from audio.stt.files import transcribe_file
    from desktop.sound_models import load_final

    recogniser = load_final(options.settings, ModelStore(), SystemClock())
    found = transcribe_file(
        args.file,
        recogniser,
        languages=options.settings.languages,
        script=ChineseScript(options.settings.chinese_script),
    )
    if args.json:
        print(json.dumps(asdict(found), ensure_ascii=False))
    else:
        sys.stdout.write(found.text + "\n")
    return 0
