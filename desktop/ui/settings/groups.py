"""Which setting stands where, and which editor it gets."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from desktop.settings import describe
from desktop.sound_server import KEY_SETTINGS
from desktop.ui.i18n import Translator
from desktop.ui.settings.avatar_editor import AvatarEditor
from desktop.ui.settings.editors import (
    ChoiceEditor,
    DeviceEditor,
    Editor,
    NumberEditor,
    SeveralEditor,
    SwitchEditor,
    TextEditor,
)
from desktop.ui.settings.key_editor import KeyEditor
from desktop.ui.settings.llm_editor import LlmEditor, LlmModelEditor
from desktop.ui.settings.model_editor import ModelEditor
from desktop.ui.settings.numbers_editor import NumbersEditor
from desktop.ui.settings.sound_editor import SoundEditor

KEY = "llm_key_in_keyring"
KEYS: Mapping[str, str] = {
    KEY: "llm",
    **{key_setting: setting for setting, key_setting in KEY_SETTINGS.items()},
}
"""Settings that are shown as the field of a key, which never reaches a file, by whose endpoint it is for."""

GROUPS: Mapping[str, tuple[str, ...]] = {
    "general": ("ui_language", "theme", "text_size", "reduced_motion", "always_on_top"),
    "character": ("avatar", "companion_click_through", "global_talk_key", "global_stop_key"),
    "sound": ("input_device", "output_device", "extra_output_delay_ms"),
    "talking": ("talk_mode", "sensitivity", "patience", "attention", "attention_s", "answer_ahead", "thinking_cue"),
    "recognition": ("languages", "whisper", "whisper_key_in_keyring", "whisper_partial", "chinese_script"),
    "voice": ("voice", "voice_key_in_keyring", "volume", "speed", "pauses", "unspeakable"),
    "llm": ("llm", "llm_model", KEY, "llm_key_env", "llm_can_plan", "llm_tools", "llm_patience_s"),
    "subtitles": ("subtitles", "subtitle_size_pt", "subtitle_font", "subtitle_contrast"),
    "numbers": ("ears",),
    "privacy": ("session_idle_min", "context_sources", "event_socket", "log_level"),
}

ENDPOINT_ONLY = (KEY, "llm_key_env", "llm_can_plan", "llm_patience_s")

_SOUND = {"whisper": "stt", "voice": "tts"}
_LANGUAGES = ((("en", "zh"), "en_zh"), (("zh", "en"), "zh_en"), (("en",), "en"), (("zh",), "zh"))
_NUMBERS: Mapping[str, tuple[float, str, float]] = {
    "extra_output_delay_ms": (10, " ms", 1),
    "attention_s": (5, " s", 1),
    "llm_patience_s": (5, " s", 1),
    "volume": (5, " %", 100),
    "speed": (5, " %", 100),
    "pauses": (10, " %", 100),
    "text_size": (10, " %", 100),
    "subtitle_size_pt": (1, " pt", 1),
    "session_idle_min": (5, " min", 1),
}


def make_editor(name: str, translator: Translator) -> Editor:
    """Return the editor of the setting `name`."""
    special: dict[str, Callable[[], Editor]] = {
        "input_device": lambda: DeviceEditor(name, translator),
        "output_device": lambda: DeviceEditor(name, translator),
        "avatar": lambda: AvatarEditor(name, translator),
        "ears": lambda: NumbersEditor(translator),
        "llm": lambda: LlmEditor(translator),
        "llm_model": lambda: LlmModelEditor(translator),
        "whisper_partial": lambda: ModelEditor(name, "stt", translator),
        "languages": lambda: ChoiceEditor(
            name,
            [value for value, _ in _LANGUAGES],
            [f"settings.languages.{key}" for _, key in _LANGUAGES],
            translator,
        ),
    }
    if name in special:
        return special[name]()
    if name in KEYS:
        return KeyEditor(name, translator)
    if name in _SOUND:
        return SoundEditor(name, _SOUND[name], translator)
    setting = describe()[name]
    match setting.kind:
        case "choice":
            return ChoiceEditor(
                name, setting.choices, [f"settings.{name}.{value}" for value in setting.choices], translator
            )
        case "list":
            return SeveralEditor(name, setting.choices, translator)
        case "boolean":
            return SwitchEditor(name)
        case "number" | "integer":
            step, unit, scale = _NUMBERS[name]
            return NumberEditor(name, (setting.minimum or 0.0, setting.maximum or 0.0), step, unit, scale)
        case _:
            return TextEditor(name, translator, is_optional=setting.kind in ("text_or_none", "port_or_off"))
