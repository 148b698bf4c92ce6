"""How the character holds itself: a target for every state and expression, reached smoothly; pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace

STATES = (
    *("starting", "idle", "listening", "thinking", "speaking", "interrupted", "muted", "error", "asleep"),
    "waiting",
)
EXPRESSIONS = ("neutral", "happy", "sad", "surprised", "thinking", "listening", "angry", "shy", "sleepy")
"""The six that every character has, and three more that models like to ask for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pose:
    """Distances in canvas units, angles in degrees (positive is clockwise), the rest 0 to 1."""

    head_x: float = 0.0
    head_y: float = 0.0
    head_turn: float = 0.0
    gaze_x: float = 0.0
    gaze_y: float = 0.0
    lid: float = 0.0
    lower_lid: float = 0.0
    lid_slant: float = 0.0
    eye_size: float = 1.0
    crest: float = 0.0
    wing: float = 0.0
    blush: float = 0.0
    tail: float = 0.0
    lift: float = 0.0


_STATE_POSES: dict[str, Pose] = {
    "starting": Pose(lid=0.55, head_y=6.0, crest=-6.0),
    "idle": Pose(),
    "listening": Pose(head_turn=7.0, head_x=6.0, head_y=-3.0, eye_size=1.05, crest=9.0),
    "thinking": Pose(head_turn=-6.0, gaze_x=0.75, gaze_y=-0.8, lid=0.14, head_x=-4.0),
    "speaking": Pose(crest=3.0),
    "interrupted": Pose(
        head_y=10.0, head_turn=-3.0, eye_size=1.13, crest=20.0, wing=17.0, lift=3.0, gaze_y=0.05, tail=5.0
    ),
    "muted": Pose(lid=0.28, head_turn=-3.0),
    "error": Pose(lid=0.2, lid_slant=11.0, head_y=8.0, gaze_y=0.4, crest=-10.0),
    "waiting": Pose(lid=0.18, gaze_x=-0.6, head_turn=-8.0, head_x=-5.0, head_y=3.0),
    "asleep": Pose(lid=1.0, head_y=14.0, head_turn=6.0, crest=-14.0),
}

_EXPRESSION_POSES: dict[str, Pose] = {
    "neutral": Pose(),
    "happy": Pose(lower_lid=0.42, blush=1.0, crest=8.0, wing=5.0, lift=2.0),
    "sad": Pose(lid=0.24, lid_slant=15.0, gaze_y=0.5, head_y=9.0, crest=-12.0),
    "surprised": Pose(eye_size=1.15, crest=18.0, head_y=-5.0, wing=8.0),
    "thinking": Pose(gaze_x=0.7, gaze_y=-0.7, lid=0.12, head_turn=-4.0),
    "listening": Pose(head_turn=5.0, eye_size=1.05, crest=7.0),
    "angry": Pose(lid=0.2, lid_slant=-14.0, head_y=3.0, crest=14.0, wing=4.0),
    "shy": Pose(lower_lid=0.28, blush=1.0, gaze_x=-0.5, gaze_y=0.5, head_turn=-6.0, head_y=5.0),
    "sleepy": Pose(lid=0.55, head_y=8.0, crest=-8.0),
}

_QUICK = frozenset({"interrupted", "listening", "surprised"})
"""What the user must see within a tenth of a second moves fast; everything else eases."""

_QUICK_TAU_S = 0.035
_CALM_TAU_S = 0.12


def target(state: str, expression: str) -> Pose:
    """Return the pose of `state` with `expression` added to it; unknown names count as idle and neutral."""
    base = _STATE_POSES.get(state, _STATE_POSES["idle"])
    extra = _EXPRESSION_POSES.get(expression, _EXPRESSION_POSES["neutral"])
    if state in ("asleep", "interrupted"):
        return base
    added = {f.name: getattr(base, f.name) + getattr(extra, f.name) for f in fields(Pose)}
    added["eye_size"] -= 1.0
    if extra.gaze_x or extra.gaze_y:
        added["gaze_x"], added["gaze_y"] = extra.gaze_x, extra.gaze_y
    added["lid"] = min(1.0, added["lid"])
    return Pose(**added)


def blink(now_s: float) -> float:
    """Return how far the lids are closed by blinking, 0 to 1; irregular, but the same for the same moment."""
    cell = math.floor(now_s / 4.0)
    start_s = cell * 4.0 + 0.4 + 2.8 * _noise(cell)
    closed = _blink_at(now_s - start_s)
    if _noise(cell + 71) > 0.78:
        closed = max(closed, _blink_at(now_s - start_s - 0.28))
    return closed


def _blink_at(since_s: float) -> float:
    if not 0.0 <= since_s < 0.18:
        return 0.0
    return float(math.sin(math.pi * since_s / 0.18) ** 0.7)


def _noise(n: int) -> float:
    value = math.sin(n * 127.1 + 11.7) * 43758.5453
    return value - math.floor(value)


def alive(pose: Pose, now_s: float, state: str) -> Pose:
    """Add what never stands still: a glance, a sway of head and tail."""
    if state == "asleep":
        return replace(pose, head_y=pose.head_y + 2.5 * math.sin(now_s * 1.4))
    glance_x = glance_y = 0.0
    if state in ("idle", "muted") and not pose.gaze_x:
        cell = math.floor(now_s / 2.6)
        if _noise(cell) > 0.55:
            glance_x, glance_y = 1.2 * (_noise(cell + 5) - 0.5), 0.7 * (_noise(cell + 9) - 0.5)
    return replace(
        pose,
        gaze_x=pose.gaze_x + glance_x,
        gaze_y=pose.gaze_y + glance_y,
        head_turn=pose.head_turn + 1.6 * math.sin(now_s * 0.7) + 4.0 * glance_x,
        head_x=pose.head_x + 2.0 * math.sin(now_s * 0.53 + 1.0) + 5.0 * glance_x,
        tail=pose.tail + 2.0 * math.sin(now_s * 1.1),
    )


def breath(now_s: float, state: str) -> float:
    """Return the fill of the chest, -1 to 1; slow when asleep."""
    rate = 0.9 if state == "asleep" else 1.6
    return math.sin(now_s * rate)


def eased(now: Pose, goal: Pose, elapsed_s: float, name: str) -> Pose:
    """Move `now` towards `goal` for `elapsed_s`; `name` is the state or expression being entered."""
    tau_s = _QUICK_TAU_S if name in _QUICK else _CALM_TAU_S
    share = 1.0 - math.exp(-max(0.0, elapsed_s) / tau_s)
    return Pose(
        **{f.name: getattr(now, f.name) + (getattr(goal, f.name) - getattr(now, f.name)) * share for f in fields(Pose)}
    )
