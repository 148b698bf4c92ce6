"""Keys of endpoints in the operating system's keyring; the only module that imports keyring."""

from __future__ import annotations

from typing import Protocol

from orchestrator.contracts.errors import InputError

SERVICE = "mynah"


class KeyVault(Protocol):
    """Keeps one key for each endpoint's address, so that no key goes to a server it was not meant for.

    Methods may block (the system may ask the user to unlock) and raise `InputError` (`keyring_unavailable`).
    """

    def read(self, url: str) -> str | None:
        """Return the key of `url`, or None."""
        ...

    def write(self, url: str, key: str) -> None:
        """Keep `key` for `url`."""
        ...

    def delete(self, url: str) -> None:
        """Forget the key of `url`; nothing happens if there is none."""
        ...


class SystemKeyVault:
    """Adapter to the keyring of the desktop; imported on first use, for it searches for backends."""

    def read(self, url: str) -> str | None:
        """Return the key of `url`, or None."""
        import keyring
        import keyring.errors

        try:
            return keyring.get_password(SERVICE, url)
        except keyring.errors.KeyringError as error:
            raise _unavailable(error) from error

    def write(self, url: str, key: str) -> None:
        """Keep `key` for `url`."""
        import keyring
        import keyring.errors

        try:
            keyring.set_password(SERVICE, url, key)
        except keyring.errors.KeyringError as error:
            raise _unavailable(error) from error

    def delete(self, url: str) -> None:
        """Forget the key of `url`."""
        import keyring
        import keyring.errors

        try:
            keyring.delete_password(SERVICE, url)
        except keyring.errors.PasswordDeleteError:
            return
        except keyring.errors.KeyringError as error:
            raise _unavailable(error) from error


def _unavailable(error: Exception) -> InputError:
    reason = " ".join(str(error).split()) or type(error).__name__
    return InputError(
        "keyring_unavailable",
        f"the system's keyring can't be used ({reason[:120]}); name an environment variable with the key instead",
        part="settings",
    )
