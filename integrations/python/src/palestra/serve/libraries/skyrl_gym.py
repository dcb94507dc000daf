"""`skyrl-gym:ID`: a text environment of SkyRL behind the tool `step`, with the rows of a training file as its tasks.

`ID` is a registered environment, or `module:Class` of a `BaseTextEnv`. `--data SPLIT=FILE` names a JSON Lines or Parquet file with the
columns that SkyRL trains on: `prompt`, and everything that the environment reads from its `extras`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import skyrl_gym
from omegaconf import OmegaConf
from skyrl_gym.envs.registration import registry

from palestra.serve.library import Episode, Json, Library, Options, Output, Tool, UsageError, text_argument

#: Longer files belong into several environments: the rows are in memory.
MAX_ROWS = 1_000_000

DEFAULT_MAX_TURNS = 10


class SkyRLGym(Library):
    """An environment with the rows of files as tasks."""

    tools = [Tool.of_text("step", "Gives a response to the environment.", "action", "The whole response, as the prompt asks for it.")]
    terminal = ("step", "action")

    def __init__(self, options: Options) -> None:
        self._id = options.id
        if ":" in self._id:
            skyrl_gym.register(id=self._id, entry_point=self._id)
        elif self._id not in registry:
            raise UsageError(f"skyrl-gym has no environment {self._id!r}. It has: {', '.join(sorted(registry))}; or pass module:Class.")
        if not options.data:
            raise UsageError(
                "skyrl-gym has environments but no tasks. Name the files that you train on: --data train=train.jsonl --data test=test.jsonl"
            )
        settings = dict(options.settings)
        self._max_turns = settings.pop("max_turns", DEFAULT_MAX_TURNS)
        self._settings = settings
        self._rows = {split: read_rows(Path(file), options.size) for split, file in options.data.items()}

    def splits(self) -> dict[str, int]:
        return {split: len(rows) for split, rows in self._rows.items()}

    def task(self, split: str, index: int) -> Json:
        # Not the whole row: it has the solution.
        return {"environment": self._id, "prompt": self._rows[split][index]["prompt"]}

    def open(self, split: str, index: int) -> Conversation:
        row = self._rows[split][index]
        extras = {"max_turns": self._max_turns, **{name: value for name, value in row.items() if name != "prompt"}}
        env = skyrl_gym.make(self._id, env_config=OmegaConf.create(self._settings), extras=extras)
        prompt = row["prompt"]
        messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
        return Conversation(env, messages)


class Conversation(Episode):
    def __init__(self, env: Any, prompt: list[Json]) -> None:
        self._env = env
        self._start: list[Json] = env.init(prompt)[0]

    def messages(self) -> list[Json]:
        return self._start

    def call(self, name: str, arguments: Json) -> Output:
        step = self._env.step(text_argument(arguments, "action"))
        text = "\n".join(str(message["content"]) for message in step["observations"])
        return Output(text, float(step["reward"]), bool(step["done"]), step.get("metadata") or None)

    def close(self) -> None:
        self._env.close()


def read_rows(file: Path, limit: int | None) -> list[Json]:
    """The rows of a JSON Lines or Parquet file. Raises `UsageError`."""
    most = min(limit or MAX_ROWS, MAX_ROWS)
    try:
        rows = parquet_rows(file, most) if file.suffix == ".parquet" else json_rows(file, most)
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} cannot be read: {error}") from error
    if not rows or any("prompt" not in row for row in rows):
        raise UsageError(f"{file} has no rows, or rows without the column prompt.")
    return rows


def json_rows(file: Path, most: int) -> list[Json]:
    rows: list[Json] = []
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            if len(rows) == most:
                break
            if line.strip():
                rows.append(json.loads(line))
    return rows


def parquet_rows(file: Path, most: int) -> list[Json]:
    try:
        from pyarrow import parquet
    except ImportError:
        raise UsageError("Parquet files need pyarrow. Run: pip install 'palestra[parquet]'") from None
    rows: list[Json] = []
    for batch in parquet.ParquetFile(file).iter_batches(1_000):
        rows += batch.slice(0, most - len(rows)).to_pylist()
        if len(rows) >= most:
            break
    return rows


def load(options: Options) -> SkyRLGym:
    return SkyRLGym(options)
