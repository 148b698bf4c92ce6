"""The sound devices there are to choose from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceChoice:
    """A sound device that can be chosen by `name`."""

    name: str
    is_default: bool
    is_bluetooth: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceChoices:
    """What there is to choose; `message` says why there is nothing, in English, `code` the same for a program."""

    inputs: tuple[DeviceChoice, ...] = ()
    outputs: tuple[DeviceChoice, ...] = ()
    message: str = ""
    code: str = ""


def list_sound_devices() -> DeviceChoices:
    """List what the sound system has; a name that occurs twice is listed once. Raises `PartFailed`."""
    from audio.devices import DeviceInfo, list_devices

    def choices(found: Sequence[DeviceInfo], *, is_input: bool) -> tuple[DeviceChoice, ...]:
        made: dict[str, DeviceChoice] = {}
        for device in found:
            if (device.inputs if is_input else device.outputs) > 0 and device.name not in made:
                made[device.name] = DeviceChoice(
                    name=device.name,
                    is_default=device.is_default_input if is_input else device.is_default_output,
                    is_bluetooth=device.is_bluetooth,
                )
        return tuple(made.values())

    found = list_devices()
    return DeviceChoices(inputs=choices(found, is_input=True), outputs=choices(found, is_input=False))
