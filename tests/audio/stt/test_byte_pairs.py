"""Whisper's tokens from the word list: the same as the library's own, which are read from another file."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from audio.stt.byte_pairs import BytePairs, read_tokens

ROOT = Path(__file__).resolve().parents[3]
_STEERING = ("<|endoftext|>", "<|startoftranscript|>", "<|startofprev|>", "<|transcribe|>", "<|notimestamps|>")
_LETTERS = "abcABC   '''sstrevmdll019²½Ⅷ一二三四五，。！？「」\n\t\r\u3000\xa0\x1c\x85é̀ñßａ１０👍🏽__--..<>|#$♪"
_PLAIN = [
    "",
    " ",
    "  ",
    " a",
    "don't",
    " they're  here ",
    "Mynah, 小八, Tutu",
    "今天天气怎么样？",
    "１２:３０",
    "'",
    "''s",
    "a  \n b",
]


def _bytes() -> list[str]:
    seen = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = iter(range(0x100, 0x200))
    return [chr(byte if byte in seen else next(hidden)) for byte in range(256)]


def _texts() -> list[str]:
    chance = random.Random(1)
    made = ["".join(chance.choices(_LETTERS, k=chance.randint(1, 14))) for _ in range(4000)]
    files = [*(ROOT / "flow_config").rglob("*.yml"), ROOT / "README.md"]
    return _PLAIN + made + [line for path in files for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.models
@pytest.mark.parametrize("name", ["whisper-base", "whisper-tiny.en"])
def test_the_list_says_the_same_as_the_library(name: str, models_dir: Path) -> None:
    import tokenizers

    library: Any = tokenizers.Tokenizer.from_file(str(models_dir / name / "tokenizer.json"))
    own = read_tokens(models_dir / name)
    assert own is not None
    texts = _texts()
    assert len(texts) > 5000
    for text in texts:
        assert own.encode(text).ids == library.encode(text, add_special_tokens=False).ids, repr(text)
    for token, place in library.get_vocab().items():
        assert own.token_to_id(token) == place
    assert own.token_to_id("<|no such token|>") is None
    end = library.token_to_id("<|endoftext|>")
    chance = random.Random(2)
    rows = [[place] for place in range(end)] + [[chance.randrange(end) for _ in range(6)] for _ in range(10_000)]
    for ids in rows:
        assert own.decode(ids) == library.decode(ids), ids


@pytest.mark.models
def test_what_is_suppressed_is_the_same(models_dir: Path) -> None:
    import tokenizers

    from audio.stt.whisper_model import Tokenizer, get_suppressed_tokens

    folder = models_dir / "whisper-base"
    library: Any = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    for language in ("en", "zh"):
        wanted, found = (
            get_suppressed_tokens(Tokenizer(tokens, True, task="transcribe", language=language), [-1])
            for tokens in (library, read_tokens(folder))
        )
        assert found == wanted and len(found) > 80


@pytest.mark.models
def test_the_tokenizer_that_stops_every_thread_is_not_read(models_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tokenizers

    from audio.stt.whisper_model import load_model

    def refuse(*_: object) -> None:
        raise AssertionError("the library's tokenizer was read")

    monkeypatch.setattr(tokenizers.Tokenizer, "from_file", refuse)
    monkeypatch.setattr(tokenizers.Tokenizer, "from_buffer", refuse)
    model = load_model(models_dir / "whisper-tiny.en", cpu_threads=1, compute_type="int8")
    assert isinstance(model.hf_tokenizer, BytePairs)


def _write(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_both_kinds_of_list_are_read(tmp_path: Path) -> None:
    tokens = [*_bytes(), "ab", "Ġab", *_STEERING]
    first, second = tmp_path / "json", tmp_path / "text"
    first.mkdir()
    second.mkdir()
    _write(first, "vocabulary.json", json.dumps(tokens))
    _write(second, "vocabulary.txt", "\n".join(tokens) + "\n")
    for folder in (first, second):
        found = read_tokens(folder)
        assert found is not None
        assert found.encode("ab ab").ids == [256, 257]
        assert found.decode([256, 257, 258, 259]) == "ab ab"
        assert found.token_to_id("<|transcribe|>") == 261


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("vocabulary.json", "[1, 2]"),
        ("vocabulary.json", '{"a": 0}'),
        ("vocabulary.json", "["),
        ("vocabulary.json", json.dumps([*_bytes(), "<|endoftext|>"])),
        ("vocabulary.txt", "\n".join(_STEERING)),
        ("vocabulary.txt", ""),
    ],
)
def test_a_list_that_is_not_whispers_is_left_to_the_library(name: str, text: str, tmp_path: Path) -> None:
    assert read_tokens(_write(tmp_path, name, text)) is None


def test_without_a_list_the_library_decides(tmp_path: Path) -> None:
    assert read_tokens(tmp_path) is None
