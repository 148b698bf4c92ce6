"""Lanes, classes and reasons: how an event travels."""

from __future__ import annotations

from enum import IntEnum, StrEnum


class Lane(StrEnum):
    """The way an event travels on the bus."""

    CONTROL = "control"
    DIALOGUE = "dialogue"
    ACTIVE_GENERATION = "active_generation"
    NOTIFICATION = "notification"
    CONTEXT = "context"
    BACKGROUND = "background"


LANE_ORDER: tuple[Lane, ...] = tuple(Lane)


class PriorityClass(IntEnum):
    """Coarse rank that follows from lane and score; informational."""

    LOW = 0
    NORMAL = 1
    HIGH = 2
    CRITICAL = 3


class InterruptReason(StrEnum):
    """Why an answer is to stop."""

    USER_BARGE_IN = "user_barge_in"
    USER_STOP = "user_stop"
    TOPIC_CHANGE = "topic_change"
    OUTPUT_FAILURE = "output_failure"
    SYSTEM_TIMEOUT = "system_timeout"
    SHUTDOWN = "shutdown"


class GenerationState(StrEnum):
    """The life of an answer; the last three are final."""

    PREPARING = "PREPARING"
    STREAMING = "STREAMING"
    SUSPENDED = "SUSPENDED"
    COMPLETED = "COMPLETED"
    CANCELLED = "CANCELLED"
    FAILED = "FAILED"

    @property
    def is_final(self) -> bool:
        """Whether nothing can follow this state."""
        return self in (GenerationState.COMPLETED, GenerationState.CANCELLED, GenerationState.FAILED)


class IntentKind(StrEnum):
    """What an output intent drives."""

    SPEECH = "speech"
    SUBTITLE = "subtitle"
    MOTION = "motion"


class Behaviour(StrEnum):
    """How an output intent joins what is already there."""

    QUEUE = "queue"
    REPLACE = "replace"
    INTERRUPT = "interrupt"
    DROP = "drop"


class IntentState(StrEnum):
    """The life of an output intent; `played` and `dropped` are final."""

    QUEUED = "queued"
    SYNTHESISING = "synthesising"
    READY = "ready"
    PLAYING = "playing"
    HELD = "held"
    PLAYED = "played"
    DROPPED = "dropped"

    @property
    def is_final(self) -> bool:
        """Whether nothing can follow this state."""
        return self in (IntentState.PLAYED, IntentState.DROPPED)
