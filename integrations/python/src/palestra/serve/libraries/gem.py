"""`gem:ID`: an environment of GEM (gem-llm) behind the tool `act`. Its rewards are those of each step."""

from __future__ import annotations

import difflib
from typing import Any

import gem
from gem.envs.registration import ENV_REGISTRY

from palestra.serve.library import Episode, Json, Options, Output, SeededLibrary, Tool, UsageError, text_argument


class Gem(SeededLibrary):
    """An environment of the library. A task is the seed of its reset."""

    tools = [Tool.of_text("act", "Acts, and returns the next observation.", "action", "The action, as the rules ask for it.")]
    terminal = ("act", "action")

    def __init__(self, options: Options) -> None:
        super().__init__(options, 1_000)
        if options.id not in ENV_REGISTRY:
            close = difflib.get_close_matches(options.id, ENV_REGISTRY, 3)
            hint = f" Did you mean {' or '.join(close)}?" if close else ""
            raise UsageError(f"gem has no environment {options.id!r}.{hint}")
        self._id = options.id
        self._settings = options.settings

    def task(self, split: str, index: int) -> Json:
        return {"environment": self._id, **super().task(split, index)}

    def open(self, split: str, index: int) -> Play:
        env = gem.make(self._id, **self._settings)
        return Play(env, *env.reset(seed=self.seed(split, index)))


class Play(Episode):
    def __init__(self, env: Any, observation: Any, info: Json) -> None:
        self._env = env
        self._start = with_suffix(observation, info)

    def messages(self) -> list[Json]:
        return [{"role": "user", "content": self._start}]

    def call(self, name: str, arguments: Json) -> Output:
        observation, reward, terminated, truncated, info = self._env.step(text_argument(arguments, "action"))
        finished = bool(terminated or truncated)
        text = str(observation) if finished else with_suffix(observation, info)
        return Output(text, float(reward), finished, {"truncated": bool(truncated)})

    def close(self) -> None:
        close = getattr(self._env, "close", None)
        if close is not None:
            close()


def with_suffix(observation: Any, info: Json) -> str:
    """The observation, and the request for the next action that games give beside it."""
    suffix = info.get("suffix")
    return f"{observation}\n{suffix}" if suffix else str(observation)


def load(options: Options) -> Gem:
    return Gem(options)
