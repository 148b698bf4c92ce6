"""The one module that opens web pages."""

from __future__ import annotations

import asyncio
import webbrowser


class SystemBrowser:
    """Implements `PageOpener` with the user's browser."""

    async def open(self, url: str) -> bool:
        """Open `url`; False if no browser could be started. Waits in a thread: some browsers start slowly."""
        return await asyncio.to_thread(webbrowser.open, url)
