"""Runs Python programs."""

from __future__ import annotations

from dataclasses import dataclass

from .._client import HTTPEnvClient
from .._types import Action, Observation, State

__all__ = ["CodeAction", "CodeObservation", "CodeState", "CodingEnv"]


@dataclass(kw_only=True)
class CodeAction(Action):
    code: str


@dataclass(kw_only=True)
class CodeObservation(Observation):
    stdout: str = ""
    stderr: str = ""
    exit_code: int = 0


@dataclass
class CodeState(State):
    last_exit_code: int = 0


class CodingEnv(HTTPEnvClient[CodeAction, CodeObservation]):
    observation_class = CodeObservation
    state_class = CodeState
