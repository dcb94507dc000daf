"""The task of a row of a trainer's data set."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from palestra.client import Client, Session
from palestra.tasks import TaskRef

_HOLDERS = ("palestra", "metadata", "verifier_metadata", "extra_info", "label", "task")


def task_of(row: Mapping[str, Any]) -> TaskRef:
    """The task of a row of any format of `palestra.rows`: its facts are columns, or below `palestra`, `metadata`, `extra_info`, or JSON text
    in `label`. `key` is empty for a row without `task_key`.

    Raises ValueError that names what is missing.
    """
    for facts in _places(row, 0):
        name = facts.get("env_name")
        if isinstance(name, str):
            return _task(name, facts)
    columns = ", ".join(sorted(map(str, row)))
    raise ValueError(
        f"No task in this row: it has no env_name. Its columns: {columns}. Write rows with `palestra prepare-tasks` or palestra.write_rows."
    )


def _places(value: Any, depth: int) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, str) and value.startswith("{"):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return
    if not isinstance(value, Mapping):
        return
    yield value
    if depth < 2:
        for holder in _HOLDERS:
            yield from _places(value.get(holder), depth + 1)


def _task(name: str, facts: Mapping[str, Any]) -> TaskRef:
    owner, slash, env = name.partition("/")
    split, index = facts.get("split"), facts.get("task_index")
    if not slash or not isinstance(split, str) or index is None:
        raise ValueError(f"The row of {name!r} needs env_name (owner/name), split and task_index; it has split {split!r}, task_index {index!r}.")
    version, variant = facts.get("env_version"), facts.get("variant")
    # Data frames turn whole numbers with gaps into floats.
    return TaskRef(owner, env, split, int(index), facts.get("task_key") or "", None if version is None else int(version), variant or None)


def session_of(client: Client, task: TaskRef, **options: Any) -> Session:
    """A session to play the task, in the environment's present version. `options`: those of `Client.session`."""
    return client.session(task.environment, split=task.split, index=task.index, variant=task.variant, **options)
