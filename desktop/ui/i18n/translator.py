"""Looks texts up and keeps widgets in the language that was chosen."""

from __future__ import annotations

import logging
from collections.abc import Callable

from PySide6.QtCore import QLocale, QObject, Signal

from desktop.faults import TEXTS as FAULTS
from desktop.faults import fault_text
from desktop.ui.i18n import (
    ears_en,
    ears_zh_cn,
    en,
    panels_en,
    panels_zh_cn,
    server_en,
    server_zh_cn,
    setup_en,
    setup_zh_cn,
    zh_cn,
)

logger = logging.getLogger(__name__)

LANGUAGES: dict[str, str] = {"en": "English", "zh_CN": "简体中文"}
"""Language codes and what each calls itself; these names are never translated."""

CATALOGUES: dict[str, dict[str, str]] = {
    "en": {**FAULTS["en"], **en.TEXTS, **panels_en.TEXTS, **ears_en.TEXTS, **setup_en.TEXTS, **server_en.TEXTS},
    "zh_CN": {
        **FAULTS["zh_CN"],
        **zh_cn.TEXTS,
        **panels_zh_cn.TEXTS,
        **ears_zh_cn.TEXTS,
        **setup_zh_cn.TEXTS,
        **server_zh_cn.TEXTS,
    },
}


def best_language(wanted: str) -> str:
    """Return the catalogue for `wanted`: a code, a relative of one (`zh`, `en-GB`), or `system`."""
    name = QLocale.system().name() if wanted in ("", "system") else wanted.replace("-", "_")
    if name in CATALOGUES:
        return name
    return "zh_CN" if name.lower().startswith("zh") else "en"


class Translator(QObject):
    """The texts in use. Widgets bind a setter to a key and are called again on every switch."""

    changed = Signal()

    def __init__(self, language: str = "system", parent: QObject | None = None) -> None:
        """Start in the best language for `language`."""
        super().__init__(parent)
        self._language = best_language(language)
        self._bindings: list[tuple[Callable[[str], object], str]] = []
        self.missing: set[str] = set()

    @property
    def language(self) -> str:
        """Code of the language in use: en or zh_CN."""
        return self._language

    def choose(self, language: str) -> None:
        """Switch the language; every bound text follows at once."""
        chosen = best_language(language)
        if chosen == self._language:
            return
        self._language = chosen
        for setter, key in self._bindings:
            setter(self.text(key))
        self.changed.emit()

    def has(self, key: str) -> bool:
        """Whether the catalogue in use knows `key`."""
        return key in CATALOGUES[self._language]

    def text(self, key: str, **values: object) -> str:
        """Return the text of `key` with `values` filled in; an unknown key is returned itself, kept and logged."""
        found = CATALOGUES[self._language].get(key)
        if found is None:
            self.missing.add(key)
            logger.warning("no text for %s in %s", key, self._language)
            return key
        return found.format(**values) if values else found

    def fault(self, code: str, message: str) -> str:
        """Return the words for an error or a problem; `message` is the English line that came with it."""
        return fault_text(code, message, self._language)

    def bind(self, setter: Callable[[str], object], key: str) -> None:
        """Call `setter` with the text of `key` now and after every switch. It lives as long as the window."""
        self._bindings.append((setter, key))
        setter(self.text(key))
