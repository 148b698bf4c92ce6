from __future__ import annotations

import sys

import pytest

from audio import devices
from audio.devices import DeviceInfo, choose_input, choose_output
from orchestrator.contracts.errors import InputError, PartFailed


def device(index, name, *, inputs=0, outputs=0, default_in=False, default_out=False, bluetooth=False, rate=48_000):
    return DeviceInfo(
        index=index,
        name=name,
        host_api="Core Audio",
        inputs=inputs,
        outputs=outputs,
        rate_hz=rate,
        is_default_input=default_in,
        is_default_output=default_out,
        is_bluetooth=bluetooth,
    )


SPEAKER = device(0, "Built-in Output", outputs=2, default_out=True)
MICROPHONE = device(1, "Built-in Microphone", inputs=1)
USB = device(2, "USB Mic", inputs=2)
HEADSET_IN = device(3, "AirPods", inputs=1, default_in=True, bluetooth=True)
HEADSET_OUT = device(4, "AirPods", outputs=2, bluetooth=True)
ALL = (SPEAKER, USB, MICROPHONE, HEADSET_IN, HEADSET_OUT)


def test_the_default_devices_are_taken():
    assert choose_output(ALL, None) is SPEAKER
    assert choose_input(ALL, None, SPEAKER) is HEADSET_IN


def test_beside_a_bluetooth_output_the_built_in_microphone_is_the_default():
    assert choose_input(ALL, None, HEADSET_OUT) is MICROPHONE
    assert choose_input((USB, HEADSET_IN), None, HEADSET_OUT) is USB
    assert choose_input((HEADSET_IN,), None, HEADSET_OUT) is HEADSET_IN
    assert choose_input(ALL, "AirPods", HEADSET_OUT) is HEADSET_IN


@pytest.mark.parametrize(
    ("name", "found"), [("USB Mic", USB), ("usb", USB), ("1", MICROPHONE), ("microphone", MICROPHONE)]
)
def test_a_device_is_found_by_name_part_of_it_or_number(name, found):
    assert choose_input(ALL, name, None) is found


@pytest.mark.parametrize("name", ["Nope", "", "99", "Built-in Output"])
def test_an_unknown_name_is_bad_input_and_lists_what_there_is(name):
    with pytest.raises(InputError) as caught:
        choose_input(ALL, name, None)
    assert "USB Mic, Built-in Microphone, AirPods" in caught.value.message
    assert caught.value.exit_code == 2


def test_without_any_device_the_part_fails():
    with pytest.raises(PartFailed, match="no microphone"):
        choose_input((SPEAKER,), None, SPEAKER)
    with pytest.raises(PartFailed, match="no loudspeaker"):
        choose_output((USB,), None)


def test_without_portaudio_there_is_one_clear_line(monkeypatch):
    class Missing:
        def find_spec(self, name, path=None, target=None):
            if name == "sounddevice":
                raise OSError("PortAudio library not found")
            return None

    monkeypatch.delitem(sys.modules, "sounddevice", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Missing(), *sys.meta_path])
    with pytest.raises(PartFailed, match="PortAudio library is not installed"):
        devices.list_devices()
