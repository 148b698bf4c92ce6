from __future__ import annotations

import numpy as np
import pytest

from audio.tts.piper_adapter import PiperSynthesiser
from desktop.voice_parts import parted_voice
from orchestrator.speech.words import word_spans

TEXT = "Well, I set the timer for ten minutes, and then we will see what is left of the afternoon."


def test_what_is_no_voice_is_used_whole(tmp_path):
    assert parted_voice(tmp_path / "none.onnx", tmp_path / "cache") is None
    (tmp_path / "bad.onnx").write_bytes(b"no model")
    assert parted_voice(tmp_path / "bad.onnx", tmp_path / "cache") is None
    assert not list((tmp_path / "cache").rglob("*.onnx"))


@pytest.mark.models
def test_a_parted_voice_gives_its_first_sound_first(model_path, tmp_path):
    voice_path = model_path("piper-en_US-joe-medium") / "voice.onnx"
    parts = parted_voice(voice_path, tmp_path)
    assert parts is not None
    kept = [part.stat().st_mtime_ns for part in parts]
    assert parted_voice(voice_path, tmp_path) == parts
    assert [part.stat().st_mtime_ns for part in parts] == kept, "parted once"
    voice = PiperSynthesiser(voice_path, parted=parts)
    assert voice.is_parted
    decoded: list[int] = []
    decode = voice._model.decode

    def counted(latents, start, end):
        decoded.append(end - start)
        return decode(latents, start, end)

    voice._model.decode = counted
    stream = voice.begin(TEXT, language="en", first_s=0.28)
    assert sum(decoded) * 256 < 0.5 * voice.rate_hz, "only the beginning was decoded"
    assert [word.text for word in stream.words] == [span.text for span in word_spans(TEXT)]
    assert not stream.estimated
    pieces = [stream.read(0.28)]
    while not stream.is_over:
        pieces.append(stream.read(0.56))
    assert len(pieces) > 4
    sound = np.concatenate(pieces)
    assert stream.words[-1].end_s * voice.rate_hz <= len(sound) + 1
    assert len(sound) <= stream.frames
    assert np.abs(sound[-1]) < 0.001
    # A click at a seam would stand out of the 5 ms around it; where the voice itself is steep, it is steep all around.
    steps = np.abs(np.diff(sound))
    for seam in np.cumsum([len(piece) for piece in pieces])[:-1] - 1:
        around = np.delete(steps[max(0, seam - 110) : seam + 110], min(seam, 110))
        assert steps[seam] <= 2 * around.max() + 0.001


@pytest.mark.models
def test_pieces_are_the_sound_of_the_whole_decoder(model_path, tmp_path):
    voice_path = model_path("piper-en_US-joe-medium") / "voice.onnx"
    voice = PiperSynthesiser(voice_path, parted=parted_voice(voice_path, tmp_path))
    sentences, _ = voice._encode("It is half past eight.", 1.0)
    whole = sentences[0].samples(0, sentences[0].frames)
    pieces = [sentences[0].samples(at, min(at + 24, sentences[0].frames)) for at in range(0, sentences[0].frames, 24)]
    np.testing.assert_allclose(np.concatenate(pieces), whole, atol=1e-4)
