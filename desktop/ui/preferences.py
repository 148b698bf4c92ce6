"""What the window needs to know of the settings."""

from __future__ import annotations

from typing import Protocol


class WindowSettings(Protocol):
    """The part of the settings that the window reads when it is built."""

    @property
    def language(self) -> str:
        """Language of the window: en, zh_CN or system."""
        ...

    @property
    def theme(self) -> str:
        """Colours: system, light or dark."""
        ...

    @property
    def reduced_motion(self) -> bool:
        """Whether to keep still what need not move."""
        ...
