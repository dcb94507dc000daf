"""What a library gives: tasks in splits, tools, and episodes. Runs in the worker processes, one call at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

#: Distance between the seeds of two splits, and so the largest number of tasks of a split.
SPLIT_SEEDS = 1_000_000

#: The split of each type that a library without splits gets. The order decides the seeds.
SEEDED_SPLITS = ("train", "validation", "test")


class UsageError(Exception):
    """The specification or an option is wrong. The message says what to write instead."""


class InvalidInput(Exception):
    """The arguments of a tool call are wrong. The policy gets the message; the episode goes on."""


@dataclass(frozen=True)
class Options:
    """How to serve a library.

    `id`: the part of the specification after the first colon. `size`: tasks of each split, or at most so many where the library has a fixed
    number. `seed`: the seed of the first task. `settings`: arguments for the library. `data`: files with tasks by split.
    """

    id: str
    size: int | None = None
    seed: int = 0
    settings: Json = field(default_factory=dict)
    data: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Tool:
    """A tool. `parameters` is a JSON schema of an object."""

    name: str
    description: str
    parameters: Json

    @classmethod
    def of_text(cls, name: str, description: str, argument: str, meaning: str) -> Tool:
        """A tool with one text argument."""
        properties = {argument: {"type": "string", "description": meaning}}
        schema = {"type": "object", "properties": properties, "required": [argument], "additionalProperties": False}
        return cls(name, description, schema)


@dataclass
class Output:
    """The result of a tool call. `reward` is None for a call that is not scored. `images`: (media type, base64)."""

    text: str = ""
    reward: float | None = None
    finished: bool = False
    metadata: Json | None = None
    images: list[tuple[str, str]] = field(default_factory=list)


class Episode(ABC):
    """One episode. Whatever a method raises besides `InvalidInput` is a failure of the environment, never a reward."""

    @abstractmethod
    def messages(self) -> list[Json]:
        """The conversation at the start: `role` (system, user, assistant) and `content` (text)."""

    def tools(self) -> list[Tool] | None:
        """The tools of this episode, or None for those of the library."""
        return None

    @abstractmethod
    def call(self, name: str, arguments: Json) -> Output:
        """Runs a tool that exists."""

    def close(self) -> None:
        """Releases what the episode holds. Runs once."""


class Library(ABC):
    """The environment that a specification names."""

    #: The tools of every episode.
    tools: list[Tool]
    #: Name and argument of the tool that scores a last message without a call, or None.
    terminal: tuple[str, str] | None

    @abstractmethod
    def splits(self) -> dict[str, int]:
        """The number of tasks of each split, in order. Fixed for the life of the process."""

    @abstractmethod
    def task(self, split: str, index: int) -> Json:
        """The facts of a task that clients see. `index` is within the split."""

    @abstractmethod
    def open(self, split: str, index: int) -> Episode:
        """Starts an episode of a task."""


class SeededLibrary(Library):
    """A library that makes a task from a seed. Splits have seeds that do not overlap."""

    def __init__(self, options: Options, size: int, splits: tuple[str, ...] = SEEDED_SPLITS) -> None:
        self._size = options.size or size
        self._first = options.seed
        self._splits = splits
        if not 1 <= self._size <= SPLIT_SEEDS:
            raise UsageError(f"A split has 1 to {SPLIT_SEEDS} tasks, not {self._size}.")

    def splits(self) -> dict[str, int]:
        return dict.fromkeys(self._splits, self._size)

    def seed(self, split: str, index: int) -> int:
        """The seed of a task."""
        return self._first + SPLIT_SEEDS * self._splits.index(split) + index

    def task(self, split: str, index: int) -> Json:
        return {"seed": self.seed(split, index)}


def text_argument(arguments: Json, name: str) -> str:
    """The one text argument of a tool. Raises `InvalidInput`."""
    if set(arguments) != {name} or not isinstance(arguments[name], str):
        raise InvalidInput(f"expected exactly the argument {name!r}, a string; received {sorted(arguments)}")
    text: str = arguments[name]
    return text
