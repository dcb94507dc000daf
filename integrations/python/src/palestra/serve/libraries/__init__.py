"""One module for each library, imported only when a specification names it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module, metadata
from importlib.util import find_spec

from palestra.serve.library import Library, Options, UsageError


@dataclass(frozen=True)
class Entry:
    """Where the adapter of a library is, the distribution that it needs, and whether it takes `--data`."""

    module: str
    distribution: str
    package: str
    takes_data: bool = False


ENTRIES = {
    "reasoning-gym": Entry("reasoning_gym", "reasoning-gym", "reasoning_gym"),
    "textarena": Entry("textarena", "textarena", "textarena"),
    "gem": Entry("gem", "gem-llm", "gem"),
    "skyrl-gym": Entry("skyrl_gym", "skyrl-gym", "skyrl_gym", takes_data=True),
    "verifiers": Entry("verifiers", "verifiers", "verifiers", takes_data=True),
    "verifiers-legacy": Entry("verifiers_legacy", "verifiers", "verifiers"),
    "inspect": Entry("inspect", "inspect-ai", "inspect_ai"),
}


def parse_spec(spec: str) -> tuple[str, str]:
    """The library and the id of a specification. Raises `UsageError`."""
    name, colon, identifier = spec.partition(":")
    if name not in ENTRIES or not colon or not identifier:
        raise UsageError(f"Unknown environment {spec!r}. Expected LIBRARY:ID with one of the libraries {', '.join(ENTRIES)}.")
    return name, identifier


def load_library(name: str, options: Options) -> Library:
    """Imports a library and finds the environment. Raises `UsageError`, which names the pip command of a missing library."""
    entry = ENTRIES[name]
    if options.data and not entry.takes_data:
        takers = " and ".join(taker for taker, one in ENTRIES.items() if one.takes_data)
        raise UsageError(f"{name} has its own tasks: --data is for {takers}.")
    if find_spec(entry.package) is None:
        raise UsageError(f"This Python has no package {entry.distribution}. Run: pip install {entry.distribution}")
    adapter = import_module(f"palestra.serve.libraries.{entry.module}")
    library: Library = adapter.load(options)
    return library


def version_of(name: str) -> str:
    """The installed version of a library."""
    distribution = ENTRIES[name].distribution
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "unknown"
