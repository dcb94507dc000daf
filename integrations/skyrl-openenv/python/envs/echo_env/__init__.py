"""Says back what it is told."""

from __future__ import annotations

from dataclasses import dataclass

from .._client import HTTPEnvClient
from .._types import Action, Observation, State

__all__ = ["EchoAction", "EchoEnv", "EchoObservation", "State"]


@dataclass(kw_only=True)
class EchoAction(Action):
    message: str


@dataclass(kw_only=True)
class EchoObservation(Observation):
    echoed_message: str = ""
    message_length: int = 0


class EchoEnv(HTTPEnvClient[EchoAction, EchoObservation]):
    observation_class = EchoObservation
