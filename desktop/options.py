"""Options that several commands share, and what becomes of them."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from desktop.paths import data_dir, flow_config
from desktop.settings import LoadedSettings, Settings, load_settings
from orchestrator.contracts.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How to run the conversation. `flow_layers` are the folders of configuration, shipped first."""

    data: Path
    flow_layers: tuple[Path, ...]
    loaded: LoadedSettings
    events: Path | None = None
    events_with_text: bool = True
    control: str | None = None
    seed: int | None = None

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.loaded.settings

    def without_llm(self) -> RunOptions:
        """Return the same options with no language model."""
        return self._with(llm="none")

    def with_default_devices(self) -> RunOptions:
        """Return the same options on the default devices."""
        return self._with(input_device=None, output_device=None)

    def _with(self, **changes: Any) -> RunOptions:
        return replace(self, loaded=replace(self.loaded, settings=replace(self.settings, **changes)))


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of every command that runs the conversation."""
    parser.add_argument(
        "--events", type=Path, metavar="FILE", help="write everything that happens into FILE (JSON lines)"
    )
    parser.add_argument("--events-no-text", action="store_true", help="blank what was said in the events file")
    parser.add_argument("--control", metavar="-|PATH", help="read commands (JSON lines) from standard input or a pipe")
    add_common_options(parser)


def add_common_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose configuration, devices and models."""
    parser.add_argument(
        "--flows", type=Path, metavar="DIR", help="your own flows, rails and persona, laid over the shipped ones"
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder of settings and history")
    parser.add_argument("--input", metavar="DEVICE", help="microphone (see mynah devices)")
    parser.add_argument("--output", metavar="DEVICE", help="loudspeaker (see mynah devices)")
    parser.add_argument(
        "--llm", metavar="local|none|URL", help="language model: offline, none, or an OpenAI-compatible endpoint"
    )
    parser.add_argument("--llm-model", metavar="NAME", help="model at the endpoint, or of the catalogue when local")
    parser.add_argument("--llm-key-env", metavar="NAME", help="environment variable that holds the endpoint's key")
    parser.add_argument("--whisper", metavar="MODEL", help="recogniser: a name of mynah models list, or a folder")
    parser.add_argument("--voice", metavar="MODEL", help="voice: a name of mynah models list, or a folder")
    parser.add_argument("--language", metavar="en|zh", help="the language you speak most")
    parser.add_argument(
        "--seed", type=int, metavar="N", help="make random choices and virtual costs the same every time"
    )
    parser.add_argument(
        "--log-level", choices=("debug", "info", "warning", "error"), help="how much is logged to standard error"
    )


def run_options(args: argparse.Namespace, *, strict: bool) -> RunOptions:
    """Make options of parsed arguments; with `strict` broken settings raise `InputError` settings_broken."""
    data = data_dir(args.data)
    overrides: dict[str, object] = {
        "input_device": args.input,
        "output_device": args.output,
        "llm": args.llm,
        "llm_model": args.llm_model,
        "llm_key_env": args.llm_key_env,
        "whisper": args.whisper,
        "voice": args.voice,
        "log_level": args.log_level,
    }
    loaded = load_settings(data, overrides)
    if args.language is not None:
        loaded = _with_language(loaded, args.language, data, overrides)
    if strict:
        loaded.or_raise()
    return RunOptions(
        data=data,
        flow_layers=_layers(args.flows, data),
        loaded=loaded,
        events=getattr(args, "events", None),
        events_with_text=not getattr(args, "events_no_text", False),
        control=getattr(args, "control", None),
        seed=args.seed,
    )


def _with_language(loaded: LoadedSettings, language: str, data: Path, overrides: dict[str, object]) -> LoadedSettings:
    """Put `language` first among those the user speaks."""
    others = tuple(known for known in loaded.settings.languages if known != language)
    return load_settings(data, {**overrides, "languages": [language, *others]})


def _layers(flows: Path | None, data: Path) -> tuple[Path, ...]:
    user = flows.expanduser() if flows is not None else data / "flows"
    if flows is not None and not user.is_dir():
        raise InputError("flows_missing", f"--flows: there is no folder {flows}", part="flows")
    return (flow_config(), user) if user.is_dir() else (flow_config(),)
