import wave
from pathlib import Path

import numpy as np
import pytest

from audio import pcm
from orchestrator.contracts.errors import InputError


def sine(rate_hz: int, seconds: float, hz: float = 440.0) -> pcm.Samples:
    return (0.5 * np.sin(2 * np.pi * hz * np.arange(round(rate_hz * seconds)) / rate_hz)).astype(np.float32)


def write(path: Path, values: np.ndarray, width: int, rate_hz: int = 16000) -> Path:
    """Write float values of shape (frames, channels) as integers of `width` bytes."""
    with wave.open(str(path), "wb") as writer:
        writer.setnchannels(values.shape[1])
        writer.setsampwidth(width)
        writer.setframerate(rate_hz)
        whole = np.rint(values.astype(np.float64) * (2 ** (8 * width - 1) - 1)).astype("<i8")
        if width == 1:
            writer.writeframes((whole + 128).astype(np.uint8).tobytes())
        else:
            writer.writeframes(whole.reshape(-1, 1).view(np.uint8).reshape(-1, 8)[:, :width].tobytes())
    return path


@pytest.mark.parametrize("rate_hz", [8000, 16000, 22050, 44100, 48000])
def test_stream_resampler_keeps_time_and_tone(rate_hz: int) -> None:
    stream = pcm.StreamResampler(rate_hz, 16000)
    tone = sine(rate_hz, 2.0)
    out, lags = [], []
    for begin in range(0, len(tone), rate_hz // 100):
        out.append(stream.push(tone[begin : begin + rate_hz // 100]))
        lags.append(stream.lag_s)
    out.append(stream.flush())
    whole = np.concatenate(out)
    assert len(whole) == pytest.approx(32000, abs=2)
    middle = slice(4000, 28000)
    np.testing.assert_allclose(whole[middle], sine(16000, 2.0)[middle], atol=0.02)
    assert 0.0 <= max(lags) < (0.08 if rate_hz == 8000 else 0.04)
    assert stream.lag_s == 0.0


def test_equal_rates_pass_through_at_once() -> None:
    stream = pcm.StreamResampler(16000, 16000)
    block = sine(16000, 0.01)
    np.testing.assert_array_equal(stream.push(block), block)
    assert stream.lag_s == 0.0


def test_odd_blocks_make_no_difference() -> None:
    tone = sine(48000, 1.0)
    one, other = pcm.StreamResampler(48000, 16000), pcm.StreamResampler(48000, 16000)
    straight = np.concatenate([one.push(tone), one.flush()])
    cuts = np.sort(np.random.default_rng(3).integers(0, len(tone), 200))
    pieces = [other.push(each) for each in np.split(tone, cuts)]
    np.testing.assert_allclose(np.concatenate([*pieces, other.flush()]), straight, atol=1e-4)


def test_int16_clips_and_returns() -> None:
    samples = np.array([-2.0, -1.0, 0.0, 0.5, 1.0, 2.0], np.float32)
    whole = pcm.to_int16(samples)
    assert whole.tolist() == [-32768, -32768, 0, 16384, 32767, 32767]
    np.testing.assert_allclose(pcm.to_float32(whole), [-1, -1, 0, 0.5, 1, 1], atol=1e-4)


def test_levels() -> None:
    assert pcm.rms_db(np.full(100, 0.1, np.float32)) == pytest.approx(-20.0, abs=0.01)
    assert pcm.rms_db(np.zeros(100, np.float32)) == pcm.SILENCE_DB
    assert pcm.rms_db(np.zeros(0, np.float32)) == pcm.SILENCE_DB
    assert pcm.db_to_gain(-6.0) == pytest.approx(0.501, abs=0.001)


@pytest.mark.parametrize("width", [1, 2, 3, 4])
@pytest.mark.parametrize("channels", [1, 2])
def test_reads_every_integer_width(tmp_path: Path, width: int, channels: int) -> None:
    tone = np.stack([sine(16000, 0.1), -0.5 * sine(16000, 0.1)][:channels], axis=1)
    samples, rate_hz = pcm.read_wav_channels(write(tmp_path / "中文 name.wav", tone, width, 22050))
    assert rate_hz == 22050
    np.testing.assert_allclose(samples, tone, atol=0.009 if width == 1 else 1e-4)
    mono, _ = pcm.read_wav(tmp_path / "中文 name.wav")
    np.testing.assert_allclose(mono, tone.mean(axis=1), atol=0.009 if width == 1 else 1e-4)


def test_writes_what_it_reads(tmp_path: Path) -> None:
    stereo = np.stack([sine(48000, 0.1), sine(48000, 0.1, 880.0)], axis=1)
    pcm.write_wav(tmp_path / "out.wav", stereo, 48000)
    samples, rate_hz = pcm.read_wav_channels(tmp_path / "out.wav")
    assert rate_hz == 48000
    np.testing.assert_allclose(samples, stereo, atol=1e-4)


def _not_a_wav(path: Path) -> None:
    path.write_bytes(b"ID3\x03 this is an mp3 in truth" * 10)


def _empty_file(path: Path) -> None:
    path.write_bytes(b"")


def _no_frames(path: Path) -> None:
    write(path, np.zeros((0, 1)), 2)


def _float_wav(path: Path) -> None:
    write(path, np.zeros((10, 1)), 4)
    raw = bytearray(path.read_bytes())
    raw[20:22] = (3).to_bytes(2, "little")  # WAVE_FORMAT_IEEE_FLOAT
    path.write_bytes(raw)


def _five_bytes_wide(path: Path) -> None:
    write(path, np.zeros((10, 1)), 2)
    raw = bytearray(path.read_bytes())
    raw[34:36] = (40).to_bytes(2, "little")
    path.write_bytes(raw)


def _directory(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (_not_a_wav, "wav_format"),
        (_empty_file, "wav_format"),
        (_no_frames, "wav_empty"),
        (_float_wav, "wav_format"),
        (_five_bytes_wide, "wav_format"),
        (_directory, "wav_unreadable"),
        (lambda path: None, "wav_unreadable"),
    ],
)
def test_a_wrong_file_is_one_clear_line(tmp_path: Path, make: object, code: str) -> None:
    path = tmp_path / "user.wav"
    assert callable(make)
    make(path)
    with pytest.raises(InputError) as caught:
        pcm.read_wav(path)
    assert caught.value.code == code
    assert caught.value.message.startswith("user.wav: ")
    assert "\n" not in caught.value.message


def test_a_truncated_file_gives_what_is_there(tmp_path: Path) -> None:
    path = write(tmp_path / "cut.wav", np.full((1000, 1), 0.5), 2)
    path.write_bytes(path.read_bytes()[:-501])
    samples, _ = pcm.read_wav(path)
    assert len(samples) == 749


def test_an_unwritable_place_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        pcm.write_wav(tmp_path / "missing" / "out.wav", sine(16000, 0.1), 16000)
    assert caught.value.code == "wav_unwritable"
