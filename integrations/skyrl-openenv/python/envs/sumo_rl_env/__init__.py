"""Traffic lights of SUMO."""

from __future__ import annotations

from dataclasses import dataclass, field

from .._client import HTTPEnvClient
from .._types import Action, Observation, State

__all__ = ["SumoAction", "SumoObservation", "SumoRLEnv", "SumoState"]


@dataclass(kw_only=True)
class SumoAction(Action):
    phase_id: int
    ts_id: str = "0"


@dataclass(kw_only=True)
class SumoObservation(Observation):
    """Times in seconds of the simulation."""

    observation: list[float] = field(default_factory=list)
    observation_shape: list[int] = field(default_factory=list)
    action_mask: list[int] = field(default_factory=list)
    sim_time: float = 0.0


@dataclass
class SumoState(State):
    net_file: str = ""
    route_file: str = ""
    num_seconds: int = 20000
    delta_time: int = 5
    yellow_time: int = 2
    min_green: int = 5
    max_green: int = 50
    reward_fn: str = "diff-waiting-time"
    sim_time: float = 0.0
    total_vehicles: int = 0
    total_waiting_time: float = 0.0
    mean_waiting_time: float = 0.0
    mean_speed: float = 0.0


class SumoRLEnv(HTTPEnvClient[SumoAction, SumoObservation]):
    observation_class = SumoObservation
    state_class = SumoState
