"""The recogniser's mailbox on a real thread: no order of calls loses or doubles a final."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from audio.ports import Recognition, Samples
from audio.stt.recogniser import Recogniser
from audio.workers import ThreadWorker
from orchestrator.clock import SystemClock
from orchestrator.contracts.events import Event, InputTranscript
from orchestrator.contracts.ids import UtteranceId

_LIMIT_S = 20.0


class _Finals:
    """Counts finals by utterance and tells when enough have come."""

    def __init__(self) -> None:
        self.texts: dict[str, list[str]] = {}
        self.after_final: list[str] = []
        self.changed = threading.Condition()

    def post(self, event: Event) -> bool:
        payload = event.payload
        if isinstance(payload, InputTranscript):
            name = str(event.utterance_id)
            with self.changed:
                if payload.final:
                    self.texts.setdefault(name, []).append(payload.text or str(payload.rejected))
                    self.changed.notify_all()
                elif name in self.texts:
                    self.after_final.append(name)
        return True

    def wait_for(self, count: int) -> bool:
        with self.changed:
            return self.changed.wait_for(lambda: len(self.texts) >= count, _LIMIT_S)


@pytest.fixture
def worker() -> Iterator[ThreadWorker]:
    worker = ThreadWorker("stt-test")
    yield worker
    assert worker.stop(_LIMIT_S)


def _job(utterance: str, number: int, *, final: bool) -> Recognition:
    audio = np.full(8_000, number, np.float32)
    return Recognition(
        utterance_id=UtteranceId(utterance),
        audio=audio,
        final=final,
        vad_fraction=0.9,
        during_output=False,
        revision=number,
    )


@pytest.mark.parametrize("seed", range(5))
def test_random_orders_give_each_released_utterance_one_final(
    seed: int, worker: ThreadWorker, make_scripted: Any, make_plain: Callable[..., Any]
) -> None:
    def decode(audio: Samples) -> Any:
        if int(audio[0]) % 7 == 0:
            raise RuntimeError("bad day")
        return make_plain(f"take {int(audio[0])}")

    sink = _Finals()
    recogniser = Recogniser(worker=worker, final=make_scripted(decode), partial=None, events=sink, clock=SystemClock())
    dice = random.Random(seed)
    expected: dict[str, set[str]] = {}
    for number in range(200):
        name = f"u{number}"
        revision = 1
        if dice.random() < 0.5:
            recogniser.submit(_job(name, revision, final=False))
        recogniser.submit(_job(name, revision, final=True))
        while dice.random() < 0.4:
            if dice.random() < 0.5:
                recogniser.withdraw(UtteranceId(name))
            revision += 1
            recogniser.submit(_job(name, revision, final=True))
        recogniser.release(UtteranceId(name), revision)
        recogniser.submit(_job(name, revision, final=False))
        # A flood may push a waiting final out; then it is answered as missing.
        expected[name] = {"failed" if revision % 7 == 0 else f"take {revision}", "missing"}
    assert sink.wait_for(200)
    assert worker.stop(_LIMIT_S)
    assert {name: len(texts) for name, texts in sink.texts.items()} == dict.fromkeys(expected, 1)
    assert all(sink.texts[name][0] in expected[name] for name in expected)
    assert sum(texts == ["missing"] for texts in sink.texts.values()) == recogniser.overflowed
    assert sink.after_final == []
    assert worker.failed == 0


def test_a_submit_does_not_wait_for_the_model(worker: ThreadWorker, make_scripted: Any, make_plain: Any) -> None:
    may_go_on = threading.Event()

    def decode(audio: Samples) -> Any:
        assert may_go_on.wait(_LIMIT_S)
        return make_plain("done")

    sink = _Finals()
    recogniser = Recogniser(worker=worker, final=make_scripted(decode), partial=None, events=sink, clock=SystemClock())
    assert recogniser.submit(_job("a", 1, final=True))
    assert not recogniser.submit(_job("a", 1, final=False))
    recogniser.release(UtteranceId("a"), 1)
    assert sink.texts == {}
    may_go_on.set()
    assert sink.wait_for(1)
    assert sink.texts == {"a": ["done"]}
