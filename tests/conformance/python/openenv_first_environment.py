"""The counter of openenv_older_environments.py for the first OpenEnv servers (0.1): stateful HTTP, one environment a process."""

import time
from dataclasses import dataclass
from uuid import uuid4

from openenv_core.env_server import Action, Environment, Observation, State, create_app


@dataclass(kw_only=True)
class CounterAction(Action):
    add: int
    wait: float = 0.0


@dataclass(kw_only=True)
class CounterObservation(Observation):
    total: int


class CounterEnvironment(Environment):
    def __init__(self):
        super().__init__()
        self._state = State(episode_id=str(uuid4()))
        self._total = 0

    def reset(self):
        self._state = State(episode_id=str(uuid4()))
        self._total = 0
        return CounterObservation(total=0, reward=None)

    def step(self, action: CounterAction):
        time.sleep(action.wait)
        self._state.step_count += 1
        if action.add < 0:
            raise RuntimeError("only upwards")
        self._total += action.add
        done = self._total >= 10
        return CounterObservation(total=self._total, reward=1.0 if done else 0, done=done)

    @property
    def state(self):
        return self._state


counter_app = create_app(CounterEnvironment(), CounterAction, CounterObservation)
