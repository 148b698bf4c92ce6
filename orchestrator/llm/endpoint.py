"""Where a language model is: address, model name and key, and who knows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import urlsplit, urlunsplit

from orchestrator.contracts.errors import InputError

LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """An OpenAI-compatible endpoint. An empty `model` means the first one the endpoint lists.

    `can_plan` is False for models too small for structured planning.
    """

    base_url: str
    model: str = ""
    api_key: str = field(default="", repr=False)
    can_plan: bool = True

    @property
    def is_loopback(self) -> bool:
        """Whether the endpoint is on this machine, so that no proxy may come between."""
        return (urlsplit(self.base_url).hostname or "") in LOOPBACK_HOSTS


class EndpointSource(Protocol):
    """Knows the endpoint of the moment; a local server gets a new address with every restart."""

    @property
    def can_plan(self) -> bool:
        """Whether the model is capable of structured planning."""
        ...

    @property
    def restarts(self) -> bool:
        """Whether a lost connection may come back by itself, so that one more try makes sense."""
        ...

    async def endpoint(self) -> Endpoint:
        """Return the endpoint, waiting a bounded time for a start. Raises `LlmFailure`."""
        ...


class FixedEndpoint:
    """An endpoint that never changes."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Keep the endpoint."""
        self._endpoint = endpoint

    @property
    def can_plan(self) -> bool:
        """Whether the model is capable of structured planning."""
        return self._endpoint.can_plan

    @property
    def restarts(self) -> bool:
        """Nothing restarts a foreign server."""
        return False

    async def endpoint(self) -> Endpoint:
        """Return the endpoint at once."""
        return self._endpoint


def endpoint_from_options(
    *,
    url: str,
    model: str | None,
    key_env: str | None,
    environ: Mapping[str, str],
    can_plan: bool = True,
) -> Endpoint:
    """Make an endpoint from what the user gave.

    A URL without a path gets `/v1`. A key is only ever taken from the variable the user names, so that no key goes
    to a server it was not meant for.

    Raises:
        InputError: the URL is none, or the named variable is empty.
    """
    parts = urlsplit(url.strip())
    try:
        host = parts.hostname
        _ = parts.port
    except ValueError:
        host = None
    if parts.scheme not in ("http", "https") or not host:
        raise InputError(
            "llm_url_invalid", f"--llm: {url!r} is no URL; use local, none or http(s)://host:port/v1", part="llm"
        )
    path = parts.path.rstrip("/").removesuffix("/chat/completions") or "/v1"
    key = ""
    if key_env is not None:
        key = environ.get(key_env, "").strip()
        if not key:
            raise InputError("llm_key_missing", f"--llm-key-env: the variable {key_env} is not set", part="llm")
    return Endpoint(
        base_url=urlunsplit((parts.scheme, parts.netloc, path, "", "")),
        model=(model or "").strip(),
        api_key=key,
        can_plan=can_plan,
    )
