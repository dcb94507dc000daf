"""Games of the Arcade Learning Environment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from .._client import HTTPEnvClient
from .._types import Action, Observation, State

__all__ = ["AtariAction", "AtariEnv", "AtariObservation", "AtariState"]

ObsType = Literal["rgb", "grayscale", "ram"]


@dataclass(kw_only=True)
class AtariAction(Action):
    action_id: int
    game_name: str = "pong"
    obs_type: ObsType = "rgb"
    full_action_space: bool = False


@dataclass(kw_only=True)
class AtariObservation(Observation):
    """`screen` is flat; `screen_shape` is what it was."""

    screen: list[int] = field(default_factory=list)
    screen_shape: list[int] = field(default_factory=list)
    legal_actions: list[int] = field(default_factory=list)
    lives: int = 0
    episode_frame_number: int = 0
    frame_number: int = 0


@dataclass
class AtariState(State):
    game_name: str = "unknown"
    obs_type: ObsType = "rgb"
    full_action_space: bool = False
    mode: int | None = None
    difficulty: int | None = None
    repeat_action_probability: float = 0.0
    frameskip: int = 4


class AtariEnv(HTTPEnvClient[AtariAction, AtariObservation]):
    observation_class = AtariObservation
    state_class = AtariState
