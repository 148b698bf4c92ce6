"""The one error base, and the kinds every part may raise."""

from __future__ import annotations


class MynahError(Exception):
    """An error a user may see.

    `code` is stable and machine-readable (`device_unknown`), `message` one clear line that says what was
    wrong and what to do, `recoverable` whether the conversation can go on. `details` are all faults, one line each,
    where `message` names only the first.
    """

    exit_code = 3

    def __init__(
        self, code: str, message: str, *, part: str = "app", recoverable: bool = False, details: tuple[str, ...] = ()
    ) -> None:
        """Keep `code`, `message`, the `part` that failed, whether it is recoverable, and the `details`."""
        super().__init__(message)
        self.details = details
        self.code = code
        self.message = message
        self.part = part
        self.recoverable = recoverable


class InputError(MynahError):
    """Bad input or configuration: commands end with exit code 2."""

    exit_code = 2


class PartFailed(MynahError):
    """A part (device, recogniser, synthesiser, model, store) failed: commands end with exit code 3."""

    exit_code = 3


class GenerationCancelled(Exception):  # noqa: N818 - not an error: the answer is no longer wanted
    """Raised inside an answer's own work when the answer has become stale."""

    def __init__(self, reason: str = "") -> None:
        """Keep the reason of the cancel."""
        super().__init__(reason)
        self.reason = reason
