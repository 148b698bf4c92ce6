"""Brings changed settings, learned words and samples of the voice into the running conversation."""

from __future__ import annotations

from collections.abc import Sequence

from audio.stt.chinese import ChineseScript
from audio.tts.pauses import Pauses
from desktop.bootstrap import RunningProgram
from desktop.ears_numbers import ears_config
from desktop.llm_host import LlmParts, local_model_name
from desktop.models import ModelStore
from desktop.settings import Settings, attention_window_s
from desktop.sound_models import load_final, load_partial, load_voices
from orchestrator.contracts.commands import Reload
from orchestrator.contracts.errors import InputError
from orchestrator.contracts.intents import SpeechIntent
from orchestrator.dialogue.attention import AttentionSettings

SAMPLES = {
    "en": "Hello! This is how I sound when I talk with you.",
    "zh": "你好！我跟你聊天的时候，就是这个声音。",
}
"""What is said to try a voice."""


class EngineDoor:
    """Implements `LiveDoor` and `WordDoor` for a running program. One thread at a time for each; not the core's."""

    def __init__(self, program: RunningProgram, store: ModelStore) -> None:
        """Change the parts of `program`; models come from `store`."""
        self._program = program
        self._assembly = program.assembly
        self._engine = program.assembly.engine
        self._brains = program.assembly.brains
        self._store = store
        self._is_hands_free = program.assembly.settings.talk_mode == "hands_free"

    def apply(self, name: str, settings: Settings) -> None:
        """Take over `name`. Raises `InputError` for an unknown device or a missing model, `PartFailed` otherwise."""
        match name:
            case "input_device" | "output_device":
                self._engine.choose_devices(input_name=settings.input_device, output_name=settings.output_device)
            case "extra_output_delay_ms":
                self._engine.set_extra_output_delay(settings.extra_output_delay_ms / 1000)
            case "sensitivity" | "patience" | "ears":
                self._engine.ears.configure(ears_config(settings))
            case "attention" | "attention_s":
                self._change_attention(settings)
            case "talk_mode":
                self._is_hands_free = settings.talk_mode == "hands_free"
                self._engine.ears.set_hands_free(self._is_hands_free)
            case "volume" | "speed" | "pauses":
                self._engine.speech.adjust(speed=settings.speed, volume=settings.volume)
                self._engine.speech.set_pauses(Pauses().scaled(settings.pauses))
            case "thinking_cue":
                self._assembly.use(settings)
            case "voice" | "voice_key_in_keyring" | "unspeakable":
                self._engine.speech.set_voices(load_voices(settings, self._store))
            case "whisper" | "whisper_partial" | "whisper_key_in_keyring":
                self._change_recogniser(settings)
            case "languages" | "chinese_script":
                self._change_languages(settings)
            case _ if name.startswith("llm"):
                self._change_llm(settings)
            case _:
                raise ValueError(f"{name} can't be changed while running")

    def _change_attention(self, settings: Settings) -> None:
        names = self._brains.names

        async def configure() -> None:
            core = self._assembly.core
            if core is not None:
                core.conversation.attention.configure(
                    AttentionSettings(window_s=attention_window_s(settings), names=names)
                )

        self._program.run_on_core(configure)

    def _change_recogniser(self, settings: Settings) -> None:
        clock = self._assembly.timing.clock
        final = load_final(settings, self._store, clock)
        self._engine.recogniser.set_models(final, load_partial(settings, self._store, clock))

    def _change_languages(self, settings: Settings) -> None:
        before = self._assembly.settings
        self._engine.recogniser.set_languages(settings.languages, ChineseScript(settings.chinese_script))
        self._assembly.use(settings)
        if settings.llm == "local" and (
            local_model_name(before, self._store) != local_model_name(settings, self._store)
        ):
            self._change_llm(settings)
        else:
            self._program.submit(Reload())

    def _change_llm(self, settings: Settings) -> None:
        llm = self._assembly.llm
        try:
            parts = llm.prepare(settings)
        except InputError as error:
            if error.code != "model_missing":
                raise
            # The choice holds, and the model is fetched next: until then there is none.
            self._take_llm(settings, LlmParts())
            raise
        self._take_llm(settings, parts)

    def _take_llm(self, settings: Settings, parts: LlmParts) -> None:
        self._assembly.use(settings)
        self._program.run_on_core(lambda: self._assembly.llm.change(parts))
        self._program.submit(Reload())

    def expect_words(self, words: Sequence[str]) -> None:
        """Expect the character's names and `words` from the next sentence on."""
        self._engine.recogniser.set_hotwords(tuple(dict.fromkeys((*self._brains.hotwords(), *words))))

    def read_again(self) -> None:
        """Read persona, flows and rails again."""
        self._program.submit(Reload())

    def say_sample(self, language: str) -> None:
        """Let the character say a sentence that belongs to no conversation: it is neither stored nor answered."""
        text = SAMPLES.get(language, SAMPLES["en"])
        assembly = self._assembly

        async def speak() -> None:
            core = assembly.core
            if core is None:
                return
            generation = assembly.generations.start(session_id=core.turns.session_id)
            generation.begin_streaming()
            core.turns.note_apart(generation.generation_id)
            assembly.engine.speech.submit(
                SpeechIntent(
                    intent_id=assembly.ids.intent(),
                    generation_id=generation.generation_id,
                    generation_order=generation.order,
                    text=text,
                    language=language,
                    interruptible=False,
                )
            )
            assembly.generations.complete(generation)

        self._program.run_on_core(speak)

    def rest_ears(self, on: bool) -> None:
        """Answer nothing that is said for a while (its level is still measured), or listen again as set."""
        self._engine.ears.set_hands_free(self._is_hands_free and not on)

    def is_quiet(self) -> bool:
        """Whether nothing sounds or waits to be played."""
        return self._engine.is_output_idle
