"""The language model of the running program: an offline child process, an endpoint, or none."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
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
from orchestrator.llm.client import LlmClient, LlmLimits, LlmStatus
from orchestrator.llm.connection import load_adapter
from orchestrator.llm.endpoint import FixedEndpoint, endpoint_from_options
from orchestrator.llm.local_server import LocalServer, ServerState
from orchestrator.llm.no_llm import NoLlm

LOCAL_DEFAULT = "smollm2-135m-instruct"
LOCAL_CHINESE = "qwen2.5-coder-0.5b-instruct"

_OFFLINE_PATIENCE_S = 60.0
"""To the first word, once the model is loaded: a long conversation takes a slow processor that long to read."""
_GRACE_S = 20.0
"""How long a model that was replaced may go on with the answer it is making."""


def local_model_name(settings: Settings, store: ModelStore) -> str:
    """Return the offline model: the chosen one; else Qwen where Chinese is spoken and it is installed, else SmolLM2."""
    if settings.llm_model is not None:
        return settings.llm_model
    if "zh" in settings.languages and store.is_installed(LOCAL_CHINESE):
        return LOCAL_CHINESE
    return LOCAL_DEFAULT


def recommended_model(settings: Settings) -> str:
    """Return the offline model that fits the languages the user speaks, installed or not."""
    return LOCAL_CHINESE if "zh" in settings.languages else LOCAL_DEFAULT


def model_file(folder: Path) -> Path:
    """Return the GGUF file of a model folder, or the path itself if it is a file."""
    if folder.is_file():
        return folder
    found = sorted(folder.glob("*.gguf"))
    return found[0] if found else folder / "model.gguf"


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmParts:
    """A model ready to be asked: `server` only offline, `client` none where no model is configured."""

    name: str | None = None
    server: LocalServer | None = None
    client: LlmClient | None = None
    knows_chinese: bool = True


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
        self._store = store
        self._data = data
        self._clock = clock
        self._ids = ids
        self._warm = warm
        self._on_state = on_state
        self._vault = vault
        self._preload: asyncio.Task[object] | None = None
        self._retiring: dict[asyncio.Task[None], LlmParts] = {}
        self._turns = 0
        self._wrap = wrap or (lambda llm: llm)
        self._parts = self.prepare(settings)

    @property
    def name(self) -> str | None:
        """Name of the model, none without one."""
        return self._parts.name

    @property
    def server(self) -> LocalServer | None:
        """The offline model's process."""
        return self._parts.server

    @property
    def client(self) -> LlmClient | None:
        """The way to the model."""
        return self._parts.client

    # --- another model ----------------------------------------------------------------------------------

    def prepare(self, settings: Settings) -> LlmParts:
        """Make what `settings` choose, without starting it. May block; any thread.

        Raises `InputError` for a missing model, a bad URL or a missing key.
        """
        if settings.llm == "none":
            return LlmParts()
        if settings.llm == "local":
            return self._prepare_local(settings)
        endpoint = endpoint_from_options(
            url=settings.llm,
            model=settings.llm_model,
            key_env=settings.llm_key_env,
            environ=os.environ,
            can_plan=settings.llm_can_plan,
        )
        if settings.llm_key_in_keyring and settings.llm_key_env is None:
            key = (self._vault or SystemKeyVault()).read(endpoint.base_url)
            if not key:
                raise InputError(
                    "llm_key_missing", f"the keyring has no key for {endpoint.base_url}; enter it again", part="llm"
                )
            endpoint = replace(endpoint, api_key=key)
        offers_tools = settings.llm_tools != "off"
        client = LlmClient(
            FixedEndpoint(endpoint),
            clock=self._clock,
            ids=self._ids,
            limits=LlmLimits.of_patience(settings.llm_patience_s),
            offers_tools=offers_tools,
        )
        return LlmParts(name=settings.llm_model or settings.llm, client=client)

    def _prepare_local(self, settings: Settings) -> LlmParts:
        name = local_model_name(settings, self._store)
        server = LocalServer(
            model_path=model_file(self._store.path(name)),
            log_path=log_dir(self._data) / "llm.log",
            clock=self._clock,
            warm=self._warm,
            on_state=self._tell,
        )
        model = self._store.catalogue.models.get(name)
        return LlmParts(
            name=name,
            server=server,
            client=LlmClient(
                server,
                clock=self._clock,
                ids=self._ids,
                limits=LlmLimits.of_patience(_OFFLINE_PATIENCE_S),
                offers_tools=settings.llm_tools == "on",
            ),
            knows_chinese=model is None or not {"zh", "multi"}.isdisjoint(model.languages),
        )

    async def change(self, parts: LlmParts) -> None:
        """Use `parts` from the next answer on. An answer in progress may end with the former model. On the loop."""
        former, self._parts = self._parts, parts
        if parts.server is not None:
            parts.server.begin()
        if parts.client is not None and self._preload is None:
            self._preload = asyncio.create_task(asyncio.to_thread(load_adapter), name="llm:import")
        task = asyncio.create_task(self._retire(former), name="llm:retire")
        self._retiring[task] = former
        task.add_done_callback(lambda done: self._retiring.pop(done, None))

    async def _retire(self, parts: LlmParts) -> None:
        await asyncio.sleep(_GRACE_S)
        await _close_parts(parts)

    # --- the core's side --------------------------------------------------------------------------------

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
        for task, parts in list(self._retiring.items()):
            task.cancel()
            await _close_parts(parts)
        await _close_parts(self._parts)

    def for_turn(self, generation_id: GenerationId, emit: Callable[[Payload], None]) -> Llm:
        """Return the model for one answer."""
        llm: Llm = NoLlm() if self.client is None else self.client.bind(generation_id, emit)
        if not self._parts.knows_chinese:
            self._turns += 1
            llm = EnglishOnlyLlm(llm, self._turns)
        return self._wrap(llm)

    def _tell(self, state: ServerState) -> None:
        if self._on_state is not None:
            self._on_state(state.value)


async def _close_parts(parts: LlmParts) -> None:
    if parts.client is not None:
        await parts.client.aclose()
    if parts.server is not None:
        await parts.server.stop()
