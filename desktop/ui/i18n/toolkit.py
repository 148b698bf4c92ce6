"""The toolkit's own words (context menus, file dialogs, standard buttons), in the language of the window."""

from __future__ import annotations

import logging

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QTranslator

logger = logging.getLogger(__name__)

_CATALOGUE = {"zh_CN": "qtbase_zh_CN"}
"""Languages other than the one that the toolkit is written in."""
_NAME = "toolkitTexts"


def speak(language: str) -> bool:
    """Let the toolkit speak `language`, widgets that are open already included; False when it can't.

    There is one application, so the window that was switched last decides.
    """
    app = QCoreApplication.instance()
    if app is None:
        return False
    for former in app.findChildren(QTranslator, _NAME):
        app.removeTranslator(former)
        former.setParent(None)
        former.deleteLater()
    if language not in _CATALOGUE:
        return True
    made = QTranslator(app)
    made.setObjectName(_NAME)
    if not made.load(_CATALOGUE[language], QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)):
        logger.warning("the toolkit has no texts in %s", language)
        return False
    return app.installTranslator(made)
