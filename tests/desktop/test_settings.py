"""Settings as a user meets them: a file, options over it, and clear words when something is wrong."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from desktop.settings import SETTINGS_FILE, Settings, describe, load_settings, save_settings, settings_schema
from orchestrator.contracts.errors import InputError


def write(folder: Path, text: str) -> Path:
    (folder / SETTINGS_FILE).write_text(text, encoding="utf-8")
    return folder


def problems(folder: Path, text: str) -> list[str]:
    return [str(problem) for problem in load_settings(write(folder, text)).problems]


def test_without_a_file_all_is_default(tmp_path: Path) -> None:
    loaded = load_settings(tmp_path / "not there")
    assert loaded.settings == Settings()
    assert loaded.or_raise() == Settings()


def test_file_over_defaults_and_options_over_the_file(tmp_path: Path) -> None:
    write(tmp_path, "llm: http://localhost:11434/v1/\nlanguages: [zh, en]\nvolume: 1\ninput_device: 3\n")
    loaded = load_settings(tmp_path, {"volume": 0.25, "whisper": None, "languages": "zh"})
    assert loaded.problems == ()
    settings = loaded.settings
    assert (settings.llm, settings.languages, settings.volume, settings.input_device) == (
        "http://localhost:11434/v1",
        ("zh",),
        0.25,
        "3",
    )
    assert settings.whisper == Settings().whisper


def test_all_errors_come_at_once_with_their_places_and_suggestions(tmp_path: Path) -> None:
    text = "volum: 1\npatience: pateint\nvolume: 7\nlanguages:\n  - en\n  - fr\n"
    text += "llm: localhost\nsubtitles: maybe\nspeed: fast\n"
    assert problems(tmp_path, text) == [
        "settings.yaml:1:1: unknown setting volum; did you mean volume?",
        "settings.yaml:2:11: patience: expected one of quick, normal, patient, got 'pateint'; did you mean patient?",
        "settings.yaml:3:9: volume: expected a number from 0 to 1, got 7",
        "settings.yaml:5:3: languages: expected one of en, zh, got 'fr'",
        "settings.yaml:7:6: llm: expected local, none or a URL such as http://localhost:11434/v1, got 'localhost'",
        "settings.yaml:8:12: subtitles: expected true or false, got 'maybe'",
        "settings.yaml:9:8: speed: expected a number, got 'fast'",
    ]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("volume: [1\n", "settings.yaml:2:1: no valid YAML"),
        ("- volume\n", "settings.yaml:1:1: expected `name: value` lines"),
        ("volume: 1\nvolume: 0.5\n", "settings.yaml:2:1: volume is here twice"),
        ("voice: ''\n", "settings.yaml:1:8: voice: expected a text"),
        ("languages: []\n", "settings.yaml:1:12: languages: expected a list"),
        ("volume: true\n", "settings.yaml:1:9: volume: expected a number"),
        ("volume: .nan\n", "settings.yaml:1:9: volume: expected a number from 0 to 1"),
        ("theme: !!python/object:os.system {}\n", "settings.yaml:1:8: theme"),
        ("[1]: 2\n", "settings.yaml:1:1: unknown setting"),
    ],
)
def test_broken_files_are_told_by_place(tmp_path: Path, text: str, place: str) -> None:
    (problem,) = problems(tmp_path, text)
    assert problem.startswith(place)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("llm_tools: off\n", {"llm_tools": "off"}),
        ("llm_tools: on\n", {"llm_tools": "on"}),
        ("event_socket: off\n", {"event_socket": None}),
        ("event_socket: 7451\n", {"event_socket": 7451}),
        ("event_socket: '7451'\n", {"event_socket": 7451}),
        ("context_sources: []\n", {"context_sources": ()}),
        ("context_sources: [window_title, clock]\n", {"context_sources": ("window_title", "clock")}),
    ],
)
def test_switches_ports_and_empty_lists_as_people_write_them(
    tmp_path: Path, text: str, expected: dict[str, Any]
) -> None:
    loaded = load_settings(write(tmp_path, text)).or_raise()
    assert {name: getattr(loaded, name) for name in expected} == expected
    jsonschema.validate(yaml.safe_load(text.replace("'7451'", "7451")), settings_schema())


@pytest.mark.parametrize(
    "text", ["event_socket: 80\n", "event_socket: on\n", "event_socket: 7451.5\n", "llm_tools: 1\n"]
)
def test_what_is_no_port_and_no_switch_is_told(tmp_path: Path, text: str) -> None:
    (problem,) = problems(tmp_path, text)
    assert "expected" in problem


def test_what_is_not_text_is_told(tmp_path: Path) -> None:
    (tmp_path / SETTINGS_FILE).write_bytes(b"volume: \xff\xfe\n")
    (problem,) = load_settings(tmp_path).problems
    assert "can't be read" in problem.text


def test_headless_stops_and_the_window_goes_on(tmp_path: Path) -> None:
    loaded = load_settings(write(tmp_path, "volume: 7\nspeed: 1.5\n"), {"theme": "drak"})
    assert loaded.settings == Settings(speed=1.5)
    with pytest.raises(InputError) as broken:
        loaded.or_raise()
    assert broken.value.code == "settings_broken" and broken.value.exit_code == 2
    assert "settings.yaml:1:9" in broken.value.message and "option theme" in broken.value.message
    assert "did you mean dark?" in broken.value.message and "\n" not in broken.value.message


def test_save_keeps_the_former_file_and_writes_only_what_differs(tmp_path: Path) -> None:
    folder = tmp_path / "数据 folder"
    first = Settings(languages=("zh",), input_device="内置麦克风", volume=0.5)
    save_settings(folder, first)
    assert yaml.safe_load((folder / SETTINGS_FILE).read_text(encoding="utf-8")) == {
        "languages": ["zh"],
        "input_device": "内置麦克风",
        "volume": 0.5,
    }
    save_settings(folder, Settings())
    assert load_settings(folder).settings == Settings()
    (folder / SETTINGS_FILE).unlink()
    (folder / f"{SETTINGS_FILE}.bak").rename(folder / SETTINGS_FILE)
    assert load_settings(folder).or_raise() == first


def test_save_refuses_what_could_not_be_loaded(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="volume"):
        save_settings(tmp_path, Settings(volume=3))
    assert not (tmp_path / SETTINGS_FILE).exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError) as unwritable:
        save_settings(tmp_path / "file", Settings())
    assert unwritable.value.code == "settings_unwritable"


def values_of(name: str) -> st.SearchStrategy[Any]:
    setting = describe()[name]
    match setting.kind:
        case "choice":
            return st.sampled_from(setting.choices)
        case "list":
            least = 1 if setting.minimum is None else int(setting.minimum)
            return st.lists(st.sampled_from(setting.choices), min_size=least, unique=True).map(tuple)
        case "port_or_off":
            return st.none() | st.integers(int(setting.minimum or 0), int(setting.maximum or 0))
        case "number":
            return st.floats(setting.minimum, setting.maximum)
        case "boolean":
            return st.booleans()
        case "numbers":
            return st.sampled_from([(), (("echo.enabled", 0.0), ("endpoint.end_silence_s", 0.75))])
        case "llm":
            return st.sampled_from(["local", "none", "https://api.example.org/v1"])
        case _:
            return st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1).filter(
                lambda text: text == text.strip() != ""
            )


@hypothesis_settings(deadline=None)
@given(st.fixed_dictionaries({name: values_of(name) for name in describe()}))
def test_all_settings_survive_saving_and_fit_the_schema(
    tmp_path_factory: pytest.TempPathFactory, values: dict[str, Any]
) -> None:
    folder = tmp_path_factory.mktemp("settings")
    settings = Settings(**values)
    save_settings(folder, settings)
    assert load_settings(folder).or_raise() == settings
    written = yaml.safe_load((folder / SETTINGS_FILE).read_text(encoding="utf-8")) or {}
    jsonschema.validate(written, settings_schema())


@pytest.mark.parametrize("wrong", [{"volume": 2}, {"volum": 1}, {"languages": ["fr"]}, {"llm": "x"}, {"theme": "drak"}])
def test_schema_refuses_what_the_loader_refuses(tmp_path: Path, wrong: dict[str, Any]) -> None:
    assert problems(tmp_path, yaml.safe_dump(wrong))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, settings_schema())


def test_presets_and_models_named_by_settings_exist() -> None:
    from audio.ears_config import PATIENCE, SENSITIVITY
    from desktop.model_catalogue import load_catalogue

    assert set(describe()["patience"].choices) == set(PATIENCE)
    assert set(describe()["sensitivity"].choices) == set(SENSITIVITY)
    models = load_catalogue().models
    defaults = Settings()
    assert {defaults.whisper, defaults.whisper_partial, defaults.voice} <= set(models)
    assert all(field.metadata["setting"].about for field in dataclasses.fields(Settings))


@pytest.mark.parametrize(
    ("variables", "languages"),
    [
        ({"LANG": "zh_CN.UTF-8"}, ("zh", "en")),
        ({"LANG": "zh_TW.UTF-8", "LC_ALL": ""}, ("zh", "en")),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "en_GB.UTF-8"}, ("en", "zh")),
        ({"LANG": "C.UTF-8"}, ("en", "zh")),
        ({"LANG": "de_DE.UTF-8"}, ("en", "zh")),
    ],
)
def test_the_language_of_the_system_is_proposed_and_a_choice_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], languages: tuple[str, ...]
) -> None:
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert load_settings(tmp_path).settings.languages == languages
    other = tuple(reversed(languages))
    save_settings(tmp_path, dataclasses.replace(load_settings(tmp_path).settings, languages=other))
    assert load_settings(tmp_path).settings.languages == other
