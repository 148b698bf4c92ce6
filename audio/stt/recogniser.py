"""The recogniser's mailbox: which audio is decoded when, by which model, and which result is posted."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from audio.ports import Recognition
from audio.stt.chinese import ChineseScript, finish_text
from audio.stt.partials import StablePartial
from audio.stt.rejection import reject, reject_before
from audio.stt.settings import CostTable, RecogniserSettings
from audio.stt.transcription import (
    SAMPLE_RATE_HZ,
    SpeechRecogniser,
    Transcription,
    Unwanted,
)
from audio.workers import Job, Worker
from orchestrator.clock import Clock
from orchestrator.contracts.errors import MynahError
from orchestrator.contracts.events import AppError, Event, InputTranscript
from orchestrator.contracts.ids import UtteranceId
from orchestrator.contracts.ports import EventSink

log = logging.getLogger(__name__)

FAILED = "failed"
MISSING = "missing"
"""Values of `rejected` beside the rules of `rejection`: decoding failed; no such revision is known."""

_MAX_UTTERANCES = 16
_MAX_CLOSED = 256

_MIN_DETECTION_S = 1.0
"""Audio from which on the detected language of a beginning utterance is believed; on recordings it never errs then."""

_FAILURE_TEXT = {
    "en": "I could not understand that: speech recognition failed. You can say it again, or type it.",
    "zh": "语音识别出错了，我没听清。请再说一遍，或者打字给我。",
}


@dataclass(slots=True, kw_only=True)
class _Outcome:
    """What came of a job; `cores` were occupied meanwhile."""

    transcript: InputTranscript
    error: MynahError | None = None
    cores: float = 1.0


@dataclass(slots=True, kw_only=True)
class _Utterance:
    """What is known of one utterance. `done` holds finals that are decoded but not released, by revision."""

    done: dict[int, _Outcome] = field(default_factory=dict)
    released: int | None = None
    language: str | None = None
    partial: StablePartial = field(default_factory=StablePartial)


class Recogniser:
    """Feeds two models through one worker: `final` for what counts, `partial` for what is shown meanwhile.

    Queues: finals, one per utterance, at most 16 (the oldest one gives way and is answered as missing); partials are
    never queued behind anything. Events may be posted from the caller's thread (`release`) and from the worker's.
    `refused_partials`, `dropped_results`, `overflowed` and `failures` count.
    """

    def __init__(
        self,
        *,
        worker: Worker,
        final: SpeechRecogniser,
        partial: SpeechRecogniser | None,
        events: EventSink,
        clock: Clock,
        settings: RecogniserSettings | None = None,
        cost_table: CostTable | None = None,
    ) -> None:
        """Use `final` for everything that `partial` can't do. `clock` is that of the conversation; real or virtual.

        With `cost_table` jobs cost what it says, so that a virtual run is the same every time.
        """
        self._worker = worker
        self._final = final
        self._partial = partial
        self._events = events
        self._clock = clock
        self._settings = settings if settings is not None else RecogniserSettings()
        self._costs = cost_table
        # Reentrant: an inline worker delivers inside a submit, and results are posted in the order they are decided.
        self._lock = threading.RLock()
        self._finals: deque[Recognition] = deque()
        self._next_partial: Recognition | None = None
        self._running: Recognition | None = None
        self._is_running_unwanted = False
        self._utterances: OrderedDict[UtteranceId, _Utterance] = OrderedDict()
        self._closed: OrderedDict[UtteranceId, None] = OrderedDict()
        self._partial_began_s = float("-inf")
        self._partial_core_s = 0.0
        self._is_failing = False
        self._is_stopped = False
        self.refused_partials = 0
        self.dropped_results = 0
        self.overflowed = 0
        self.failures = 0

    # --- mailbox ---------------------------------------------------------------------------------------------

    def submit(self, job: Recognition) -> bool:
        """Queue `job`; see `RecogniserPort`. A partial is also refused while partials cost too much."""
        with self._lock:
            if self._is_stopped or self._is_settled(job.utterance_id):
                return False
            if not job.final:
                if not self._has_room_for_partial():
                    self.refused_partials += 1
                    return False
                self._next_partial = job
            else:
                self._queue_final(job)
        self._pump()
        return True

    def withdraw(self, utterance_id: UtteranceId) -> None:
        """Forget what is known of `utterance_id` so far; without effect once it is released."""
        with self._lock:
            if self._is_settled(utterance_id):
                return
            self._finals = deque(job for job in self._finals if job.utterance_id != utterance_id)
            if self._next_partial is not None and self._next_partial.utterance_id == utterance_id:
                self._next_partial = None
            if self._running is not None and self._running.utterance_id == utterance_id:
                self._is_running_unwanted = True
            known = self._utterances.get(utterance_id)
            if known is not None:
                known.done.clear()

    def release(self, utterance_id: UtteranceId, revision: int) -> None:
        """Post the final of `utterance_id` with `revision`, now or when it is decoded; see `RecogniserPort`."""
        with self._lock:
            if self._is_settled(utterance_id):
                return
            known = self._utterance(utterance_id)
            known.released = revision
            outcome = known.done.get(revision)
            if outcome is not None:
                self._post_final(utterance_id, outcome)
            elif self._is_stopped:
                self._post_final(utterance_id, _empty(FAILED))
            elif not self._is_coming(utterance_id, revision):
                self._post_final(utterance_id, _empty(MISSING))

    def set_hotwords(self, hotwords: Sequence[str]) -> None:
        """Expect these names from the next job on. Keep the list short: unrelated words cost accuracy."""
        with self._lock:
            self._settings = replace(self._settings, hotwords=tuple(hotwords))

    def set_models(self, final: SpeechRecogniser, partial: SpeechRecogniser | None) -> None:
        """Use other models from the next job on; the running one ends with its own."""
        with self._lock:
            self._final, self._partial = final, partial

    def set_languages(self, languages: Sequence[str], script: ChineseScript) -> None:
        """Expect other languages, the favourite first, from the next job on."""
        with self._lock:
            self._settings = replace(self._settings, languages=tuple(languages), script=script)

    def stop(self) -> None:
        """Take no more work and answer every released utterance. The worker is stopped by its owner."""
        with self._lock:
            self._is_stopped = True
            self._finals.clear()
            self._next_partial = None
            for utterance_id, known in list(self._utterances.items()):
                if known.released is not None:
                    self._post_final(utterance_id, _empty(FAILED))

    # --- queue -----------------------------------------------------------------------------------------------

    def _is_settled(self, utterance_id: UtteranceId) -> bool:
        """Whether the utterance was released, so that nothing new may come of it."""
        known = self._utterances.get(utterance_id)
        return utterance_id in self._closed or (known is not None and known.released is not None)

    def _is_coming(self, utterance_id: UtteranceId, revision: int) -> bool:
        jobs = list(self._finals)
        if self._running is not None and self._running.final and not self._is_running_unwanted:
            jobs.append(self._running)
        return any(job.utterance_id == utterance_id and job.revision == revision for job in jobs)

    def _has_room_for_partial(self) -> bool:
        if self._running is not None or self._finals or self._next_partial is not None:
            return False
        load = self._settings.partial_load
        return load > 0 and self._clock.monotonic_s() - self._partial_began_s >= self._partial_core_s / load

    def _queue_final(self, job: Recognition) -> None:
        self._next_partial = None
        if self._running is not None and self._running.final and self._running.utterance_id == job.utterance_id:
            self._is_running_unwanted = True
        self._finals = deque(other for other in self._finals if other.utterance_id != job.utterance_id)
        self._finals.append(job)
        self._utterance(job.utterance_id).done.clear()
        if len(self._finals) > _MAX_UTTERANCES:
            lost = self._finals.popleft()
            self.overflowed += 1
            known = self._utterances.get(lost.utterance_id)
            if known is not None and known.released == lost.revision:
                self._post_final(lost.utterance_id, _empty(MISSING))

    def _utterance(self, utterance_id: UtteranceId) -> _Utterance:
        known = self._utterances.get(utterance_id)
        if known is None:
            known = self._utterances[utterance_id] = _Utterance()
            # Utterances that are neither released nor closed were given up by the ears; they are forgotten in time.
            idle = [key for key, other in self._utterances.items() if other.released is None and key != utterance_id]
            for key in idle[: max(0, len(idle) - 2 * _MAX_UTTERANCES)]:
                del self._utterances[key]
        return known

    def _pump(self) -> None:
        """Hand the next job to the worker. Only one is under way, so that a final never stands behind what is stale."""
        while True:
            with self._lock:
                if self._running is not None:
                    return
                job = self._take_next()
                if job is None:
                    return
                self._running = job
                self._is_running_unwanted = False
                model = self._model_for(job)
                if not job.final:
                    self._partial_began_s = self._clock.monotonic_s()
            audio_s = len(job.audio) / SAMPLE_RATE_HZ
            cost_s = self._costs.cost_s(final=job.final, audio_s=audio_s) if self._costs is not None else None
            # Not under the lock: an inline worker runs the job here.
            name = "final" if job.final else "partial"
            if self._worker.submit(self._work(job, model, cost_s), name=name, cost_s=cost_s):
                return
            self._finish(job, _empty(FAILED, audio_s=audio_s))

    def _take_next(self) -> Recognition | None:
        if self._finals:
            return self._finals.popleft()
        job, self._next_partial = self._next_partial, None
        return job

    def _model_for(self, job: Recognition) -> SpeechRecogniser:
        """Choose the model; until the language of an utterance is known its partials go to the big one, which tells."""
        if job.final or self._partial is None:
            return self._final
        languages = self._settings.languages
        language = languages[0] if len(languages) == 1 else self._utterance(job.utterance_id).language
        return self._partial if language in self._settings.partial_languages else self._final

    # --- on the worker -----------------------------------------------------------------------------------------

    def _work(self, job: Recognition, model: SpeechRecogniser, cost_s: float | None) -> Job:
        def run() -> Callable[[], None]:
            outcome = self._decode(job, model, cost_s) if self._is_wanted(job) else None

            def deliver() -> None:
                self._finish(job, outcome)
                self._pump()

            return deliver

        return run

    def _is_wanted(self, job: Recognition) -> bool:
        """Whether the running `job` still is: not withdrawn, and no final waits behind a partial."""
        with self._lock:
            return not self._is_running_unwanted and (job.final or not self._finals)

    def _decode(self, job: Recognition, model: SpeechRecogniser, cost_s: float | None) -> _Outcome | None:
        audio_s = len(job.audio) / SAMPLE_RATE_HZ
        vad_fraction = job.vad_fraction if job.via == "voice" else None
        rule = reject_before(vad_fraction)
        if rule is not None:
            return _empty(rule, audio_s=audio_s, vad_fraction=job.vad_fraction)
        try:
            result = model.transcribe(
                job.audio,
                languages=self._settings.languages,
                hotwords=self._settings.hotwords,
                final=job.final,
                vad_fraction=vad_fraction,
                is_wanted=lambda: self._is_wanted(job),
            )
        except Unwanted:
            return None
        except Exception as error:
            log.warning("decoding failed: %s", error)
            wrapped = error if isinstance(error, MynahError) else MynahError("stt_failed", str(error), part="stt")
            return _Outcome(transcript=_empty(FAILED, audio_s=audio_s).transcript, error=wrapped)
        return _Outcome(transcript=self._transcript(job, result, vad_fraction, cost_s), cores=model.cores)

    def _transcript(
        self, job: Recognition, result: Transcription, vad_fraction: float | None, cost_s: float | None
    ) -> InputTranscript:
        rejected = reject(result, vad_fraction=vad_fraction)
        if not job.final:
            # No second decoding stands behind a partial, so a repetition in it was hardly said.
            rejected = rejected or result.flaw
        text = (
            ""
            if rejected is not None
            else finish_text(result.text, language=result.language, script=self._settings.script, is_whole=job.final)
        )
        return InputTranscript(
            final=job.final,
            text=text,
            language=result.language,
            audio_s=len(job.audio) / SAMPLE_RATE_HZ,
            decode_s=cost_s if cost_s is not None else result.decode_s,
            context=result.context,
            retried=result.retried,
            avg_logprob=result.avg_logprob,
            no_speech=result.no_speech,
            vad_fraction=job.vad_fraction,
            rejected=rejected,
            end_chance=result.end_chance,
        )

    # --- results ---------------------------------------------------------------------------------------------

    def _finish(self, job: Recognition, outcome: _Outcome | None) -> None:
        with self._lock:
            is_unwanted = self._is_running_unwanted
            self._running = None
            self._is_running_unwanted = False
            if outcome is None:
                self.dropped_results += 1
                return
            if not job.final:
                self._partial_core_s = outcome.transcript.decode_s * outcome.cores
            self._report(outcome)
            if is_unwanted or self._is_stopped:
                self.dropped_results += 1
            elif job.final:
                self._finish_final(job, outcome)
            else:
                self._finish_partial(job, outcome.transcript)

    def _finish_final(self, job: Recognition, outcome: _Outcome) -> None:
        known = self._utterances.get(job.utterance_id)
        if known is None:
            return
        if known.released is None:
            known.done = {job.revision: outcome}
            self._post(job.utterance_id, replace(outcome.transcript, final=False, provisional=True))
        elif known.released == job.revision:
            self._post_final(job.utterance_id, outcome)
        else:
            self.dropped_results += 1

    def _finish_partial(self, job: Recognition, transcript: InputTranscript) -> None:
        if self._is_settled(job.utterance_id):
            self.dropped_results += 1
            return
        if transcript.rejected is not None:
            return
        known = self._utterance(job.utterance_id)
        if transcript.audio_s >= _MIN_DETECTION_S:
            known.language = known.language or transcript.language
        before = known.partial.text
        text = known.partial.update(transcript.text)
        if text and text != before:
            self._post(job.utterance_id, replace(transcript, text=text))

    def _report(self, outcome: _Outcome) -> None:
        """Tell the user that decoding fails: once, until it has worked again."""
        if outcome.error is None:
            self._is_failing = self._is_failing and outcome.transcript.rejected in ("vad", FAILED)
            return
        self.failures += 1
        if self._is_failing:
            return
        self._is_failing = True
        message = _FAILURE_TEXT.get(self._settings.languages[0], _FAILURE_TEXT["en"])
        payload = AppError(code=outcome.error.code, part="stt", recoverable=True, message=message)
        self._events.post(Event(payload=payload, source="stt"))

    def _post_final(self, utterance_id: UtteranceId, outcome: _Outcome) -> None:
        self._utterances.pop(utterance_id, None)
        self._closed[utterance_id] = None
        while len(self._closed) > _MAX_CLOSED:
            self._closed.popitem(last=False)
        self._post(utterance_id, outcome.transcript)

    def _post(self, utterance_id: UtteranceId, payload: InputTranscript) -> None:
        self._events.post(Event(payload=payload, source="stt", utterance_id=utterance_id))


def _empty(rejected: str, *, audio_s: float = 0.0, vad_fraction: float | None = None) -> _Outcome:
    """Return the final of an utterance without words."""
    return _Outcome(
        transcript=InputTranscript(
            final=True,
            text="",
            language=None,
            audio_s=audio_s,
            decode_s=0.0,
            context="short",
            retried=False,
            avg_logprob=None,
            no_speech=None,
            vad_fraction=vad_fraction,
            rejected=rejected,
        )
    )
