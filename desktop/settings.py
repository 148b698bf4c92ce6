"""The user's settings: typed, checked with their place in the file, saved without ever losing the old ones."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import logging
import shutil
import urllib.parse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from desktop.ears_numbers import Numbers, check_numbers, numbers_schema
from desktop.sound_server import checked_name
from desktop.system_language import spoken_by_default
from orchestrator.contracts.errors import InputError
from orchestrator.contracts.wellformed import mend_text
from orchestrator.flows.whole_text import WholeTextLoader

SETTINGS_FILE = "settings.yaml"
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a value of a setting may be; one per field of `Settings`.

    `kind` is text, text_or_none, sound, number, integer, boolean, choice, list, numbers, port_or_off or llm;
    `minimum` and `maximum` are inclusive; a list with `minimum` 0 may be empty.
    """

    kind: str
    about: str
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None


UI_LANGUAGES = ("auto", "en", "zh")
SPOKEN_LANGUAGES = ("en", "zh")


def _setting(default: Any, kind: str, about: str, **limits: Any) -> Any:
    """Declare a setting; a default that is a function is asked at each start."""
    metadata = {"setting": Setting(kind=kind, about=about, **limits)}
    if callable(default):
        return dataclasses.field(default_factory=default, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings. A None device is the system's default; a None model name is left to the endpoint."""

    ui_language: str = _setting("auto", "choice", "language of the window", choices=UI_LANGUAGES)
    languages: tuple[str, ...] = _setting(
        spoken_by_default,
        "list",
        "languages the user speaks, the favourite first; the system's is proposed",
        choices=SPOKEN_LANGUAGES,
    )
    chinese_script: str = _setting(
        "simplified", "choice", "script of recognised Chinese", choices=("simplified", "traditional")
    )
    input_device: str | None = _setting(None, "text_or_none", "microphone, by name or number")
    output_device: str | None = _setting(None, "text_or_none", "loudspeaker, by name or number")
    extra_output_delay_ms: float = _setting(
        0.0, "number", "delay after the device's own, e.g. Bluetooth", minimum=0, maximum=2000
    )
    talk_mode: str = _setting("hands_free", "choice", "how to talk", choices=("hands_free", "push_to_talk"))
    sensitivity: str = _setting(
        "normal", "choice", "how easily it can be interrupted", choices=("relaxed", "normal", "eager")
    )
    patience: str = _setting(
        "normal", "choice", "how long it waits for the end of a turn", choices=("quick", "normal", "patient")
    )
    ears: tuple[tuple[str, float], ...] = _setting((), "numbers", "numbers of the ears in place of the dials', by name")
    answer_ahead: bool = _setting(
        True, "boolean", "begin to answer while the end of the turn is still being judged (thrown away if you go on)"
    )
    attention: str = _setting(
        "always",
        "choice",
        "whom it answers: always, or only when called by name or soon after an exchange",
        choices=("always", "addressed"),
    )
    attention_s: float = _setting(20.0, "number", "how long after an exchange it needs no name", minimum=3, maximum=600)
    whisper: str = _setting("whisper-base", "sound", "recogniser: a model's name or folder, or URL#model of a server")
    whisper_key_in_keyring: bool = _setting(
        False, "boolean", "whether the key of the recogniser's server is in the system's keyring"
    )
    whisper_partial: str = _setting(
        "whisper-tiny.en", "text", "recogniser of English while the user speaks: a model's name or folder"
    )
    voice: str = _setting(
        "piper-en_US-joe-medium", "sound", "voice: a model's name or folder, or URL#model/voice of a server"
    )
    voice_key_in_keyring: bool = _setting(
        False, "boolean", "whether the key of the voice's server is in the system's keyring"
    )
    volume: float = _setting(0.8, "number", "loudness of the voice", minimum=0, maximum=1)
    speed: float = _setting(1.0, "number", "speed of the voice", minimum=0.5, maximum=2)
    pauses: float = _setting(1.0, "number", "length of the pauses between sentences", minimum=0.3, maximum=3)
    unspeakable: str = _setting("espeak", "choice", "text that the voice can't speak", choices=("espeak", "show_only"))
    llm: str = _setting("local", "llm", "language model: local, none, or the URL of an OpenAI-compatible endpoint")
    llm_model: str | None = _setting(None, "text_or_none", "model at the endpoint, or of the catalogue when local")
    llm_key_env: str | None = _setting(None, "text_or_none", "environment variable that holds the endpoint's key")
    llm_key_in_keyring: bool = _setting(False, "boolean", "whether the endpoint's key is in the system's keyring")
    llm_can_plan: bool = _setting(False, "boolean", "whether the endpoint's model can plan (the offline ones can't)")
    llm_tools: str = _setting(
        "auto",
        "choice",
        "whether the model may call tools (time, reminders, memory, pages); auto: only an endpoint's",
        choices=("auto", "on", "off"),
    )
    llm_patience_s: float = _setting(
        20.0, "number", "how long an endpoint may take to its first word; then it is said", minimum=3, maximum=600
    )
    context_sources: tuple[str, ...] = _setting(
        (),
        "list",
        "what Mynah looks at by itself: the clock, the title of the active window",
        choices=("clock", "window_title"),
        minimum=0,
    )
    event_socket: int | None = _setting(
        None,
        "port_or_off",
        "port on this machine that takes events from other programs, or off",
        minimum=1024,
        maximum=65535,
    )
    thinking_cue: bool = _setting(False, "boolean", "a few words when an answer takes more than a second")
    subtitles: bool = _setting(True, "boolean", "show subtitles")
    subtitle_size_pt: float = _setting(18.0, "number", "size of subtitles", minimum=8, maximum=72)
    subtitle_font: str | None = _setting(None, "text_or_none", "font family of subtitles")
    subtitle_contrast: str = _setting("normal", "choice", "contrast of subtitles", choices=("normal", "high"))
    theme: str = _setting("auto", "choice", "colours of the window", choices=("auto", "light", "dark"))
    reduced_motion: bool = _setting(False, "boolean", "keep still what need not move")
    text_size: float = _setting(1.0, "number", "size of the window's letters, 1 is normal", minimum=1, maximum=2)
    always_on_top: bool = _setting(False, "boolean", "keep the window above others")
    avatar: str | None = _setting(None, "text_or_none", "character: the folder of an avatar pack, none the persona's")
    companion_click_through: bool = _setting(False, "boolean", "clicks on the companion go to what is behind it")
    global_talk_key: str | None = _setting(None, "text_or_none", "key to talk outside the window, like Ctrl+Alt+Space")
    global_stop_key: str | None = _setting(None, "text_or_none", "key to stop outside the window, like Ctrl+Alt+S")
    session_idle_min: float = _setting(
        30.0, "number", "a new conversation begins after so many minutes of silence", minimum=1, maximum=10080
    )
    log_level: str = _setting("info", "choice", "how much is logged", choices=("debug", "info", "warning", "error"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing wrong in the settings. `line` and `column` count from 1; 0 means the value is not from a file."""

    file: str
    line: int
    column: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.text}" if self.line else f"{self.file}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSettings:
    """Settings with everything right taken and everything wrong left at its default, and the list of the wrong."""

    settings: Settings
    problems: tuple[Problem, ...] = ()

    def or_raise(self) -> Settings:
        """Return the settings; raise `InputError` (`settings_broken`) that names all problems if there are any."""
        if self.problems:
            raise InputError("settings_broken", "; ".join(str(problem) for problem in self.problems), part="settings")
        return self.settings


def attention_window_s(settings: Settings) -> float | None:
    """Return how long after an exchange no name is needed, None where none ever is."""
    return settings.attention_s if settings.attention == "addressed" else None


@functools.cache
def describe() -> Mapping[str, Setting]:
    """Return what each setting may be, by name, in the order of `Settings`."""
    return {field.name: field.metadata["setting"] for field in dataclasses.fields(Settings)}


def load_settings(data: Path, overrides: Mapping[str, Any] | None = None) -> LoadedSettings:
    """Read `settings.yaml` of the data folder `data` and lay `overrides` over it; a None override says nothing.

    Headless commands call `or_raise()` on the result, the window shows the problems as a notice. A missing file
    is no problem. Never raises.
    """
    path = data / SETTINGS_FILE
    problems: list[Problem] = []
    values = _read(path, problems)
    for name, value in (overrides or {}).items():
        if value is None:
            continue
        checked = _checked(name, value, Problem(file=f"option {name}", line=0, column=0, text=""), problems)
        if checked is not _WRONG:
            values[name] = checked
    return LoadedSettings(settings=Settings(**values), problems=tuple(problems))


def save_settings(data: Path, settings: Settings) -> None:
    """Write the settings that differ from the defaults; the former file stays as `settings.yaml.bak`.

    Raises `InputError` (`settings_unwritable`), or `settings_broken` if a value is out of its range.
    """
    defaults = Settings()
    problems: list[Problem] = []
    values: dict[str, Any] = {}
    for name in describe():
        value = getattr(settings, name)
        _checked(name, value, Problem(file=f"setting {name}", line=0, column=0, text=""), problems)
        if value != getattr(defaults, name):
            values[name] = _plain(name, value)
    LoadedSettings(settings=settings, problems=tuple(problems)).or_raise()
    path = data / SETTINGS_FILE
    new = path.with_name(path.name + ".new")
    try:
        data.mkdir(parents=True, exist_ok=True)
        text = yaml.safe_dump(values, allow_unicode=True, sort_keys=False) if values else ""
        new.write_text(f"# Settings of Mynah; what is not here has its default.\n{text}", encoding="utf-8")
        if path.exists():
            shutil.copy2(path, path.with_name(path.name + ".bak"))
        new.replace(path)
    except OSError as error:
        raise InputError(
            "settings_unwritable", f"{path} can't be written: {error.strerror}.", part="settings"
        ) from error


def _plain(name: str, value: Any) -> Any:
    """Return `value` as YAML and JSON have it."""
    if describe()[name].kind == "numbers":
        return dict(value)
    return list(value) if isinstance(value, tuple) else value


def check_value(name: str, value: Any) -> Any:
    """Return `value` in the type of the setting `name`; raise `InputError` (`setting_invalid`) if it may not be."""
    problems: list[Problem] = []
    checked = _checked(name, value, Problem(file=f"setting {name}", line=0, column=0, text=""), problems)
    if problems:
        raise InputError("setting_invalid", problems[0].text, part="settings")
    return checked


def settings_schema() -> dict[str, Any]:
    """Return the JSON Schema of `settings.yaml`."""
    defaults = Settings()
    properties = {}
    for name, setting in describe().items():
        default = getattr(defaults, name)
        properties[name] = {
            **_schema_of(setting),
            "description": setting.about,
            "default": _plain(name, default),
        }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Mynah settings",
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
    }


def _schema_of(setting: Setting) -> dict[str, Any]:
    limits = {
        key: value for key, value in (("minimum", setting.minimum), ("maximum", setting.maximum)) if value is not None
    }
    match setting.kind:
        case "choice":
            # YAML reads a bare on and off as true and false.
            switches = [value for value, word in _SWITCHES.items() if word in setting.choices]
            return {"enum": [*setting.choices, *switches]}
        case "list":
            least = 1 if setting.minimum is None else int(setting.minimum)
            return {"type": "array", "items": {"enum": list(setting.choices)}, "minItems": least, "uniqueItems": True}
        case "port_or_off":
            return {"anyOf": [{"type": "integer", **limits}, {"enum": ["off", False, None]}]}
        case "numbers":
            return numbers_schema()
        case "boolean":
            return {"type": "boolean"}
        case "integer" | "number":
            return {"type": setting.kind, **limits}
        case "text_or_none":
            return {"type": ["string", "integer", "null"]}
        case "llm":
            return {"type": "string", "pattern": "^(local|none|https?://.+)$"}
        case _:
            return {"type": "string", "minLength": 1}


# --- reading ----------------------------------------------------------------------------------------------------------


_WRONG = object()


def _read(path: Path, problems: list[Problem]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    try:
        text = path.read_text(encoding="utf-8")
        root = yaml.compose(text, Loader=WholeTextLoader)
    except FileNotFoundError:
        return values
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        problems.append(Problem(file=path.name, line=line, column=column, text=f"no valid YAML: {error.problem}"))
        return values
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        problems.append(Problem(file=path.name, line=1, column=1, text=f"can't be read: {_one_line(error)}"))
        return values
    if root is None:
        return values
    if not isinstance(root, yaml.MappingNode):
        problems.append(_at(root, path, "expected `name: value` lines"))
        return values
    seen: set[str] = set()
    for key_node, value_node in root.value:
        name = str(key_node.value)
        if name in seen:
            problems.append(_at(key_node, path, f"{name} is here twice"))
            continue
        seen.add(name)
        if name not in describe():
            problems.append(_at(key_node, path, f"unknown setting {name}{did_you_mean(name, describe())}"))
            continue
        try:
            value = yaml.SafeLoader.construct_document(_constructor(), value_node)
        except (yaml.YAMLError, ValueError) as error:
            problems.append(_at(value_node, path, f"{name}: {_one_line(error)}"))
            continue
        checked = _checked(name, value, _at(value_node, path, ""), problems)
        if checked is not _WRONG:
            values[name] = checked
    return values


def _constructor() -> yaml.SafeLoader:
    return yaml.SafeLoader("")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _at(node: yaml.Node, path: Path, text: str) -> Problem:
    return Problem(file=path.name, line=node.start_mark.line + 1, column=node.start_mark.column + 1, text=text)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean …?` for the nearest of `known`, or an empty string."""
    near = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _checked(name: str, value: Any, place: Problem, problems: list[Problem]) -> Any:
    """Return `value` in the type of the setting `name`; on a problem, note it at `place` and return `_WRONG`."""
    setting = describe().get(name)
    if setting is None:
        problems.append(dataclasses.replace(place, text=f"unknown setting{did_you_mean(name, describe())}"))
        return _WRONG
    try:
        return _CHECKS[setting.kind](setting, value)
    except (ValueError, OverflowError) as error:
        problems.append(dataclasses.replace(place, text=f"{name}: {error}" if place.line else str(error)))
        return _WRONG


def _text(setting: Setting, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"expected a text, got {value!r}")
    return mend_text(value).strip()


def _sound(setting: Setting, value: Any) -> str:
    return checked_name(_text(setting, value))


def _text_or_none(setting: Setting, value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return _text(setting, value)


def _number(setting: Setting, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"expected a number, got {value!r}")
    low = setting.minimum if setting.minimum is not None else float("-inf")
    high = setting.maximum if setting.maximum is not None else float("inf")
    if not low <= value <= high:
        raise ValueError(f"expected a number from {low:g} to {high:g}, got {value:g}")
    return float(value)


def _boolean(setting: Setting, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, got {value!r}")
    return value


_SWITCHES = {True: "on", False: "off"}


def _choice(setting: Setting, value: Any) -> str:
    if isinstance(value, bool) and _SWITCHES[value] in setting.choices:
        return _SWITCHES[value]
    if value not in setting.choices:
        hint = did_you_mean(str(value), setting.choices)
        raise ValueError(f"expected one of {', '.join(setting.choices)}, got {value!r}{hint}")
    return str(value)


def _list(setting: Setting, value: Any) -> tuple[str, ...]:
    items: Sequence[Any] = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, list | tuple) or (not items and setting.minimum != 0):
        raise ValueError(f"expected a list of {', '.join(setting.choices)}, got {value!r}")
    return tuple(dict.fromkeys(_choice(setting, item.strip() if isinstance(item, str) else item) for item in items))


def _port_or_off(setting: Setting, value: Any) -> int | None:
    if value is None or value is False or value == "off":
        return None
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    low, high = int(setting.minimum or 1), int(setting.maximum or 65535)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"expected off or a port from {low} to {high}, got {value!r}")
    return value


def _llm(setting: Setting, value: Any) -> str:
    text = _text(setting, value)
    if text in ("local", "none"):
        return text
    parts = urllib.parse.urlsplit(text)
    if parts.scheme in ("http", "https") and parts.hostname:
        return text.rstrip("/")
    raise ValueError(f"expected local, none or a URL such as http://localhost:11434/v1, got {text!r}")


def _numbers(setting: Setting, value: Any) -> Numbers:
    return check_numbers(value)


_CHECKS = {
    "text": _text,
    "text_or_none": _text_or_none,
    "sound": _sound,
    "number": _number,
    "boolean": _boolean,
    "choice": _choice,
    "list": _list,
    "llm": _llm,
    "port_or_off": _port_or_off,
    "numbers": _numbers,
}
