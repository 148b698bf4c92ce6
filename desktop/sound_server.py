"""Servers that recognise or speak in place of a model on this computer: how a setting names one, and its key."""

from __future__ import annotations

import ipaddress
import os
import urllib.parse
from dataclasses import dataclass
from typing import TYPE_CHECKING

from desktop.key_vault import KeyVault
from orchestrator.contracts.errors import InputError

if TYPE_CHECKING:
    from desktop.settings import Settings

KEY_ENVS = {"voice": "MYNAH_VOICE_KEY", "whisper": "MYNAH_STT_KEY"}
"""Environment variables with the keys of the servers, by setting; they go before the system's keyring."""

KEY_SETTINGS = {"voice": "voice_key_in_keyring", "whisper": "whisper_key_in_keyring"}
"""Settings that say whether the key of the server in force is in the keyring."""

DEFAULT_MODELS = {"voice": "tts-1", "whisper": "whisper-1"}
DEFAULT_VOICE = "alloy"

_SCHEMES = ("http://", "https://")
_EXAMPLE = "http://localhost:8000/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class SoundServer:
    """An OpenAI-compatible server. `url` ends before `/audio`; an empty `model` or `voice` leaves it to the default."""

    url: str
    model: str = ""
    voice: str = ""

    def name(self, setting: str) -> str:
        """Return it as the value of `setting`: `URL#model` of whisper, `URL#model/voice` of voice."""
        if setting == "whisper":
            return f"{self.url}#{self.model}" if self.model else self.url
        # A model's name may have a slash of its own.
        model = self.model.replace("%", "%25").replace("/", "%2F")
        choice = f"{model}/{self.voice}" if self.voice else model
        return f"{self.url}#{choice}" if choice else self.url

    @property
    def host(self) -> str:
        """Where it is, for people."""
        return urllib.parse.urlsplit(self.url).netloc.rpartition("@")[2]

    @property
    def is_here(self) -> bool:
        """Whether it is on this computer, so that nothing leaves it."""
        host = urllib.parse.urlsplit(self.url).hostname or ""
        if host == "localhost" or host.endswith(".localhost"):
            return True
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return False


def is_server(name: str) -> bool:
    """Whether the value of a setting is an address and no model's name or folder."""
    return name.startswith(_SCHEMES)


def parse_server(setting: str, name: str) -> SoundServer | None:
    """Return the server that the value `name` of `setting` means; None for a model's name or folder."""
    if not is_server(name):
        return None
    url, _, choice = name.partition("#")
    url = url.rstrip("/")
    if setting == "whisper":
        return SoundServer(url=url, model=choice)
    model, _, voice = choice.partition("/")
    return SoundServer(url=url, model=urllib.parse.unquote(model), voice=voice)


def checked_address(text: str) -> str:
    """Return the address `text` without a slash at its end; raise `ValueError` in one line for what is none.

    Without a scheme it is taken for http on this computer or in the local network, and for https elsewhere.
    """
    address = text.strip()
    if "://" not in address and address and not address.partition(":")[2].startswith("/"):
        address = f"{'http' if _is_near(address) else 'https'}://{address}"
    hint = f"expected an address such as {_EXAMPLE}, got {text.strip()!r}"
    if any(letter.isspace() for letter in address) or "#" in address or "?" in address:
        raise ValueError(hint)
    try:
        parts = urllib.parse.urlsplit(address)
        has_port = parts.port is None or parts.port > 0
    except ValueError as error:
        raise ValueError(hint) from error
    if parts.scheme not in ("http", "https") or not parts.hostname or not has_port:
        raise ValueError(hint)
    if parts.username is not None or parts.password is not None:
        # The address is stored in a file, and shown.
        raise ValueError("an address must hold no password; put the key into its own field")
    address = address.rstrip("/")
    for end in ("/audio/speech", "/audio/transcriptions"):
        address = address.removesuffix(end)
    return address


def _is_near(address: str) -> bool:
    host = address.partition("/")[0].partition(":")[0]
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith((".local", ".lan"))


def checked_name(text: str) -> str:
    """Return the value `text` of a setting; raise `ValueError` if it is an address with a fault."""
    if not is_server(text):
        return text
    url, mark, choice = text.partition("#")
    return f"{checked_address(url)}{mark}{choice}"


def server_key(setting: str, server: SoundServer, settings: Settings, vault: KeyVault) -> str | None:
    """Return the key of the `server` that `setting` names: of the environment, else of the keyring.

    May block. Raises `InputError` (`keyring_unavailable`) if the settings say that it is in the keyring.
    """
    key = os.environ.get(KEY_ENVS[setting])
    if key is not None:
        return key
    if getattr(settings, KEY_SETTINGS[setting]):
        return vault.read(server.url)
    return find_key(server, vault) if server.url.startswith("https://") else None


def find_key(server: SoundServer, vault: KeyVault) -> str | None:
    """Return the key that is in the keyring for `server`; None also where there is no keyring. May block."""
    try:
        return vault.read(server.url)
    except InputError:
        return None
