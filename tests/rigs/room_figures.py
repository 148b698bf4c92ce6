"""Figures of a room in which all is well."""

from __future__ import annotations

from audio.room_measure import RoomFigures

FINE = RoomFigures(
    noise_db=-60.0,
    voice_db=-35.0,
    coupling_db=-15.0,
    delay_s=0.012,
    loss_db=30.0,
    ducks=0,
    cuts=0,
    talked_s=20.0,
    is_half_duplex=False,
)
