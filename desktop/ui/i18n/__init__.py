"""The window's words in every language, switchable while it is open."""

from desktop.ui.i18n.translator import LANGUAGES, Translator, best_language

__all__ = ["LANGUAGES", "Translator", "best_language"]
