"""Asks endpoints of language models whether they can be used, and looks for those on this machine."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from desktop.faults import fault_text
from desktop.key_vault import KeyVault
from desktop.settings import Settings
from orchestrator.clock import Clock
from orchestrator.contracts.errors import MynahError
from orchestrator.contracts.ids import IdFactory
from orchestrator.llm.endpoint import FixedEndpoint, endpoint_from_options

if TYPE_CHECKING:
    from orchestrator.llm.client import LlmStatus

LOCAL_SERVERS = (("Ollama", "http://localhost:11434/v1"), ("LM Studio", "http://localhost:1234/v1"))
"""Programs that serve a model on this machine, and where they do by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmTest:
    """What an endpoint answered. `messages` are one line for the user by language (en, zh), empty when all is well.

    `program` names the program that serves it, where that is known.
    """

    url: str
    is_ok: bool
    models: tuple[str, ...] = ()
    messages: dict[str, str] | None = None
    program: str = ""


class LlmProbe:
    """Asks on the caller's thread, for at most a few seconds. Keys go only to the address they were kept for."""

    def __init__(self, clock: Clock, vault: KeyVault, servers: Sequence[tuple[str, str]] | None = None) -> None:
        """Look for `servers`: names and addresses (default: `LOCAL_SERVERS`)."""
        self._clock = clock
        self._vault = vault
        self._servers = servers

    def ask(self, settings: Settings, url: str, *, with_key: bool) -> LlmTest:
        """Ask the endpoint `url`; the model and the key are those of `settings`. Raises nothing."""
        from orchestrator.llm.client import LlmClient

        try:
            endpoint = endpoint_from_options(
                url=url,
                model=settings.llm_model,
                key_env=settings.llm_key_env if with_key else None,
                environ=os.environ,
            )
            if with_key and settings.llm_key_in_keyring and settings.llm_key_env is None:
                endpoint = replace(endpoint, api_key=self._vault.read(endpoint.base_url) or "")
        except MynahError as error:
            messages = {language: fault_text(error.code, error.message, language) for language in ("en", "zh")}
            return LlmTest(url=url, is_ok=False, messages=messages)

        async def check() -> LlmStatus:
            client = LlmClient(FixedEndpoint(endpoint), clock=self._clock, ids=IdFactory("t"))
            try:
                return await client.check()
            finally:
                await client.aclose()

        status = asyncio.run(check())
        return LlmTest(
            url=endpoint.base_url,
            is_ok=status.is_ok,
            models=status.models,
            messages={language: status.message(language) for language in ("en", "zh")},
        )

    def find(self, settings: Settings) -> tuple[LlmTest, ...]:
        """Return the programs of the list that answer now; no key is sent."""
        servers = self._servers if self._servers is not None else LOCAL_SERVERS
        nameless = replace(settings, llm_model=None)
        found = [(name, self.ask(nameless, url, with_key=False)) for name, url in servers]
        return tuple(replace(test, program=name) for name, test in found if test.is_ok)


def base_url(url: str) -> str:
    """Return the address a key is kept under."""
    return endpoint_from_options(url=url, model=None, key_env=None, environ={}).base_url
