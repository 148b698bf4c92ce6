"""The language model of the running program: an offline child process, an endpoint, or none."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from desktop.english_only import EnglishOnlyLlm
from desktop.key_vault import KeyVault, SystemKeyVault
from desktop.models import ModelStore
from desktop.paths import log_dir
from desktop.settings import Settings
from orchestrator.clock import Clock
from orchestrator.contracts.dialogue import ChatMessage, Llm
from orchestrator.contracts.errors import InputError
from orchestrator.contracts.events import Payload
from orchestrator.contracts.ids import GenerationId, IdFactory
from orchestrator.llm.client import LlmClient, LlmStatus
from orchestrator.llm.connection import load_adapter
from orchestrator.llm.endpoint import FixedEndpoint, endpoint_from_options
from orchestrator.llm.local_server import LocalServer, ServerState
from orchestrator.llm.no_llm import NoLlm

LOCAL_DEFAULT = "smollm2-135m-instruct"
LOCAL_CHINESE = "qwen2.5-coder-0.5b-instruct"


def local_model_name(settings: Settings, store: ModelStore) -> str:
    """Return the offline model: the chosen one; else Qwen where Chinese is spoken and it is installed, else SmolLM2."""
    if settings.llm_model is not None:
        return settings.llm_model
    if "zh" in settings.languages and store.is_installed(LOCAL_CHINESE):
        return LOCAL_CHINESE
    return LOCAL_DEFAULT


def model_file(folder: Path) -> Path:
    """Return the GGUF file of a model folder, or the path itself if it is a file."""
    if folder.is_file():
        return folder
    found = sorted(folder.glob("*.gguf"))
    return found[0] if found else folder / "model.gguf"


class LlmHost:
    """Implements the core's `LlmHost`. `client` is none where no model is configured.

    With `must_answer`, `open` waits for an endpoint's first answer and raises `InputError` if it can't be used.
    """

    def __init__(
        self,
        *,
        settings: Settings,
        store: ModelStore,
        data: Path,
        clock: Clock,
        ids: IdFactory,
        warm: Callable[[], Sequence[ChatMessage]] | None = None,
        must_answer: bool = False,
        wait_for_local: bool = False,
        on_state: Callable[[str], None] | None = None,
        wrap: Callable[[Llm], Llm] | None = None,
        vault: KeyVault | None = None,
    ) -> None:
        """Prepare what the settings choose. Raises `InputError` for a missing model, a bad URL or a missing key."""
        self._must_answer = must_answer
        self._wait_for_local = wait_for_local
        self.server: LocalServer | None = None
        self.client: LlmClient | None = None
        self.name: str | None = None
        self._on_state = on_state
        self._knows_chinese = True
        self._preload: asyncio.Task[object] | None = None
        self._turns = 0
        self._wrap = wrap or (lambda llm: llm)
        if settings.llm == "none":
            return
        if settings.llm == "local":
            self.name = local_model_name(settings, store)
            path = model_file(store.path(self.name))
            self.server = LocalServer(
                model_path=path, log_path=log_dir(data) / "llm.log", clock=clock, warm=warm, on_state=self._tell
            )
            self.client = LlmClient(self.server, clock=clock, ids=ids, offers_tools=settings.llm_tools == "on")
            model = store.catalogue.models.get(self.name)
            self._knows_chinese = model is None or not {"zh", "multi"}.isdisjoint(model.languages)
            return
        endpoint = endpoint_from_options(
            url=settings.llm,
            model=settings.llm_model,
            key_env=settings.llm_key_env,
            environ=os.environ,
            can_plan=settings.llm_can_plan,
        )
        if settings.llm_key_in_keyring and settings.llm_key_env is None:
            key = (vault or SystemKeyVault()).read(endpoint.base_url)
            if not key:
                raise InputError(
                    "llm_key_missing", f"the keyring has no key for {endpoint.base_url}; enter it again", part="llm"
                )
            endpoint = replace(endpoint, api_key=key)
        self.name = settings.llm_model or settings.llm
        offers_tools = settings.llm_tools != "off"
        self.client = LlmClient(FixedEndpoint(endpoint), clock=clock, ids=ids, offers_tools=offers_tools)

    async def open(self) -> None:
        """Begin to load the offline model; check an endpoint if it must answer."""
        if self.server is not None:
            if self._wait_for_local:
                await self.server.start()
            else:
                self.server.begin()
        elif self.client is not None and self._must_answer:
            status = await self.client.check()
            status.require_ok()
        if self.client is not None:
            # The first answer must not wait for an import.
            self._preload = asyncio.create_task(asyncio.to_thread(load_adapter), name="llm:import")

    async def check(self) -> LlmStatus | None:
        """Return the state of the model, None without one."""
        return await self.client.check() if self.client is not None else None

    async def close(self) -> None:
        """Close connections and end the child process."""
        if self._preload is not None:
            await asyncio.wait({self._preload}, timeout=0.5)
        if self.client is not None:
            await self.client.aclose()
        if self.server is not None:
            await self.server.stop()

    def for_turn(self, generation_id: GenerationId, emit: Callable[[Payload], None]) -> Llm:
        """Return the model for one answer."""
        llm: Llm = NoLlm() if self.client is None else self.client.bind(generation_id, emit)
        if not self._knows_chinese:
            self._turns += 1
            llm = EnglishOnlyLlm(llm, self._turns)
        return self._wrap(llm)

    def _tell(self, state: ServerState) -> None:
        if self._on_state is not None:
            self._on_state(state.value)
