"""Stock trading of FinRL."""

from __future__ import annotations

from dataclasses import dataclass, field

from .._client import HTTPEnvClient
from .._types import Action, Observation, State

__all__ = ["FinRLAction", "FinRLEnv", "FinRLObservation", "State"]


@dataclass(kw_only=True)
class FinRLAction(Action):
    """One number from -1 (sell) to 1 (buy) for each stock."""

    actions: list[float]


@dataclass(kw_only=True)
class FinRLObservation(Observation):
    state: list[float] = field(default_factory=list)
    portfolio_value: float = 0.0
    date: str = ""


class FinRLEnv(HTTPEnvClient[FinRLAction, FinRLObservation]):
    observation_class = FinRLObservation
