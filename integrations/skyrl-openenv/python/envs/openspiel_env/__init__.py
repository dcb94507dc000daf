"""Games of OpenSpiel."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .._client import HTTPEnvClient
from .._types import Action, Observation, State

__all__ = ["OpenSpielAction", "OpenSpielEnv", "OpenSpielObservation", "OpenSpielState"]


@dataclass(kw_only=True)
class OpenSpielAction(Action):
    action_id: int
    game_name: str = "catch"
    game_params: dict[str, Any] = field(default_factory=dict)


@dataclass(kw_only=True)
class OpenSpielObservation(Observation):
    info_state: list[float] = field(default_factory=list)
    legal_actions: list[int] = field(default_factory=list)
    game_phase: str = "playing"
    current_player_id: int = 0
    opponent_last_action: int | None = None


@dataclass
class OpenSpielState(State):
    game_name: str = "unknown"
    agent_player: int = 0
    opponent_policy: str = "random"
    game_params: dict[str, Any] = field(default_factory=dict)
    num_players: int = 1


class OpenSpielEnv(HTTPEnvClient[OpenSpielAction, OpenSpielObservation]):
    observation_class = OpenSpielObservation
    state_class = OpenSpielState
