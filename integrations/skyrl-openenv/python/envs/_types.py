"""What the six environments have in common. Fields come in the order in which SkyRL shows them to the model: done, reward, metadata, own ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

ObservationT = TypeVar("ObservationT")


@dataclass(kw_only=True)
class Action:
    """Not sent: the servers of this generation know no action metadata."""

    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(kw_only=True)
class Observation:
    done: bool = False
    reward: bool | int | float | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass
class State:
    """What the server tells beyond these fields is in `extra`."""

    episode_id: str | None = None
    step_count: int = 0
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass
class StepResult(Generic[ObservationT]):
    observation: ObservationT
    reward: float | None = None
    done: bool = False
