"""Text that is shown instead of spoken: it counts as heard, word by word, at reading pace."""

from __future__ import annotations

from collections.abc import Callable

from audio.tts.timing import estimate_words
from orchestrator.contracts.events import OutputWord, TimedWord
from orchestrator.contracts.ids import GenerationId
from orchestrator.contracts.intents import SpeechIntent
from orchestrator.speech.words import reading_duration_s

WordSink = Callable[[SpeechIntent, OutputWord], None]


class ShownText:
    """One intent that is being shown. Takes the time; not thread-safe."""

    def __init__(self, intent: SpeechIntent, now_s: float, *, words_done: int = 0) -> None:
        """Show `intent` from `now_s` on, beginning behind its first `words_done` words."""
        self.intent = intent
        self.words: tuple[TimedWord, ...] = estimate_words(
            intent.text, start_s=0.0, end_s=reading_duration_s(intent.text)
        )
        self._done = min(words_done, len(self.words))
        self._origin_s = now_s - self._offset_s()
        self._is_held = False

    @property
    def generation_id(self) -> GenerationId:
        """The answer it belongs to."""
        return self.intent.generation_id

    @property
    def is_over(self) -> bool:
        """Whether every word has been shown long enough."""
        return self._done >= len(self.words)

    def poll(self, now_s: float, sink: WordSink) -> None:
        """Hand every word that has been read by `now_s` to `sink`."""
        while not self._is_held and not self.is_over:
            word = self.words[self._done]
            if self._origin_s + word.end_s > now_s:
                return
            self._done += 1
            sink(self.intent, self._report(word, self._origin_s + word.end_s, is_cut=False))

    def stop(self, now_s: float, sink: WordSink) -> None:
        """Report the word that was being read as cut."""
        if not self._is_held and not self.is_over:
            word = self.words[self._done]
            if self._origin_s + word.start_s < now_s:
                sink(self.intent, self._report(word, now_s, is_cut=True))

    def hold(self, now_s: float, sink: WordSink) -> None:
        """Stand still."""
        self.stop(now_s, sink)
        self._is_held = True

    def resume(self, now_s: float) -> None:
        """Go on from the start of the word that was cut."""
        if self._is_held:
            self._is_held = False
            self._origin_s = now_s - self._offset_s()

    def _offset_s(self) -> float:
        return self.words[self._done].start_s if self._done < len(self.words) else 0.0

    def _report(self, word: TimedWord, end_s: float, *, is_cut: bool) -> OutputWord:
        return OutputWord(
            index=word.index,
            text=word.text,
            char_start=word.char_start,
            char_end=word.char_end,
            at_s=self._origin_s + word.start_s,
            end_s=end_s,
            cut=is_cut,
            estimated=True,
        )
