from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from desktop import key_vault
from desktop.key_vault import SystemKeyVault
from desktop.llm_host import LlmHost
from desktop.models import ModelStore
from desktop.settings import Settings
from orchestrator.clock import VirtualClock
from orchestrator.contracts.errors import InputError
from orchestrator.contracts.ids import IdFactory


class Vault:
    def __init__(self, keys: dict[str, str]) -> None:
        self.keys = keys
        self.asked: list[str] = []

    def read(self, url: str) -> str | None:
        self.asked.append(url)
        return self.keys.get(url)

    def write(self, url: str, key: str) -> None:
        self.keys[url] = key

    def delete(self, url: str) -> None:
        self.keys.pop(url, None)


def host(folder: Path, vault: Vault, **values: Any) -> LlmHost:
    return LlmHost(
        settings=Settings(**values),
        store=ModelStore(folder / "models"),
        data=folder,
        clock=VirtualClock(0.0),
        ids=IdFactory("t"),
        vault=vault,
    )


def test_the_keyring_is_asked_only_if_a_key_was_put_there(tmp_path: Path) -> None:
    vault = Vault({"http://example.org/v1": "sk"})
    host(tmp_path, vault, llm="http://example.org/v1")
    assert vault.asked == []
    host(tmp_path, vault, llm="http://example.org", llm_key_in_keyring=True)
    assert vault.asked == ["http://example.org/v1"], "the address is the one it was kept under"


def test_a_key_that_is_gone_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        host(tmp_path, Vault({}), llm="http://example.org/v1", llm_key_in_keyring=True)
    assert raised.value.code == "llm_key_missing"


def test_without_a_keyring_the_adapter_says_what_to_do() -> None:
    import keyring
    from keyring.backends import fail

    before = keyring.get_keyring()
    keyring.set_keyring(fail.Keyring())  # type: ignore[no-untyped-call]
    try:
        vault = SystemKeyVault()
        for call in (lambda: vault.read("u"), lambda: vault.write("u", "k"), lambda: vault.delete("u")):
            with pytest.raises(InputError) as raised:
                call()
            assert raised.value.code == "keyring_unavailable"
            assert "environment variable" in raised.value.message
    finally:
        keyring.set_keyring(before)


def test_the_adapter_keeps_each_key_under_its_address() -> None:
    import keyring
    import keyring.backend
    import keyring.errors

    class Memory(keyring.backend.KeyringBackend):
        priority = 1  # type: ignore[assignment]
        kept: dict[tuple[str, str], str] = {}  # noqa: RUF012 - one for the test

        def get_password(self, service: str, username: str) -> str | None:
            return self.kept.get((service, username))

        def set_password(self, service: str, username: str, password: str) -> None:
            self.kept[service, username] = password

        def delete_password(self, service: str, username: str) -> None:
            if self.kept.pop((service, username), None) is None:
                raise keyring.errors.PasswordDeleteError("none")

    before = keyring.get_keyring()
    keyring.set_keyring(Memory())
    try:
        vault = SystemKeyVault()
        vault.write("http://a/v1", "one")
        assert (vault.read("http://a/v1"), vault.read("http://b/v1")) == ("one", None)
        assert Memory.kept == {(key_vault.SERVICE, "http://a/v1"): "one"}
        vault.delete("http://a/v1")
        vault.delete("http://a/v1")
        assert vault.read("http://a/v1") is None
    finally:
        keyring.set_keyring(before)
