"""Tasks of an environment as small references that fit a data set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from palestra import background
from palestra.canonical import sha256_of
from palestra.client import Client, environment_path

# The largest page of the service.
PAGE = 500


@dataclass(frozen=True)
class TaskRef:
    """A task.

    Attributes:
        owner, env: of the environment.
        split, index: place of the task, from 0.
        key: SHA-256 of the canonical JSON of its content. Equal tasks of all versions and splits have the same key.
        version: number of the environment's version that was read, or None for an environment without versions.
        variant: class of the environment, or None for the default.
    """

    owner: str
    env: str
    split: str
    index: int
    key: str
    version: int | None = None
    variant: str | None = None

    @property
    def environment(self) -> str:
        """`owner/env`"""
        return f"{self.owner}/{self.env}"

    def to_dict(self) -> dict[str, Any]:
        """JSON form; `TaskRef(**value)` reads it."""
        return asdict(self)


def iter_tasks(
    environment: str,
    split: str = "train",
    *,
    start: int = 0,
    stop: int | None = None,
    variant: str | None = None,
    client: Client | None = None,
) -> Iterator[TaskRef]:
    """Tasks of a split in its order, from `start` to `stop` (exclusive), read page by page.

    Yields the same for the same version of the environment. Raises `Failure`: InfrastructureFailure for an unknown environment or key,
    PolicyFailure for an unknown split.
    """
    connection = client or Client()
    owner, _, env = environment.partition("/")
    path = environment_path(environment)
    version = background.worker.run(connection.get(path)).get("version")
    while stop is None or start < stop:
        limit = PAGE if stop is None else min(PAGE, stop - start)
        page = background.worker.run(connection.get(f"{path}/tasks", split=split, variant=variant, start=start, limit=limit))
        for task in page["tasks"]:
            yield TaskRef(owner, env, split, task["index"], sha256_of(task["task_spec"]), version, variant)
        start += len(page["tasks"])
        if not page["tasks"] or (page["total"] is not None and start >= page["total"]):
            return


