"""Global keys of the settings, given to the window: one to talk while it is held, one to stop."""

from __future__ import annotations

from collections.abc import Callable

from desktop.global_keys.keys import Combination, GlobalKeys, Handler, parse_combination
from orchestrator.contracts.errors import InputError
from orchestrator.contracts.views import NoticeView


class WindowKeys:
    """Takes the keys of the settings. `apply` and `close` are for the GUI thread; the adapter's thread only calls."""

    def __init__(
        self,
        adapter: GlobalKeys | str,
        call: Callable[[Callable[[], None]], object],
        show: Callable[[NoticeView], object],
        *,
        talk: Handler,
        stop: Callable[[], None],
    ) -> None:
        """Use `adapter`, or say by a notice why there is none; `call` runs on the GUI thread."""
        self._adapter = adapter
        self._call = call
        self._show = show
        self._talk = talk
        self._stop = stop
        self._now: tuple[str | None, str | None] = (None, None)

    def apply(self, talk_key: str | None, stop_key: str | None) -> None:
        """Take these keys, none for nothing; what can't be had becomes a notice."""
        if (talk_key, stop_key) == self._now:
            return
        self._now = (talk_key, stop_key)
        wanted: dict[Combination, Handler] = {}
        for text, handler in ((talk_key, self._on_talk), (stop_key, self._on_stop)):
            if text is None:
                continue
            try:
                wanted[parse_combination(text)] = handler
            except InputError as error:
                self._show(NoticeView(code=error.code, text=error.message, severity="warning"))
        if isinstance(self._adapter, str):
            if wanted:
                self._tell(self._adapter)
            return
        taken = self._adapter.start(wanted)
        if taken:
            names = ", ".join("+".join([*sorted(one.modifiers), one.key]) for one in taken)
            self._tell(f"{names}: taken by another program")

    def close(self) -> None:
        """Give the keys back."""
        if not isinstance(self._adapter, str):
            self._adapter.stop()

    def _tell(self, reason: str) -> None:
        text = f"Keys outside the window: {reason}"
        self._show(NoticeView(code="global_keys_failed", text=text, severity="warning"))

    def _on_talk(self, is_down: bool) -> None:
        self._call(lambda: self._talk(is_down))

    def _on_stop(self, is_down: bool) -> None:
        if is_down:
            self._call(self._stop)
