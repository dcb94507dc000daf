"""The range of a trainer's versions that an adapter supports."""

from __future__ import annotations

import re
from importlib import metadata

_CLAUSE = re.compile(r"(>=|<=|==|!=|<|>)([0-9][0-9A-Za-z.]*)")
_COMPARE = {
    ">=": lambda a, b: a >= b,
    "<=": lambda a, b: a <= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
}


def require(distribution: str, supported: str, *, extra: str | None) -> str:
    """The installed version of a trainer's package. An adapter calls it before it imports the trainer.

    Args:
        distribution: its name on the package index, such as `trl`.
        supported: clauses such as `>=1.16,<2`. Only numbers of releases count: 1.17.0rc1 is 1.17.0.
        extra: of this package, for the text of the error; None for a trainer that is installed from its repository.

    Raises ImportError, which names the installed version and the supported ones.
    """
    command = "docs/trainers says from where" if extra is None else f"pip install 'palestra[{extra}]'"
    how = f"Install a supported version: {command}."
    try:
        installed = metadata.version(distribution)
    except metadata.PackageNotFoundError:
        raise ImportError(f"This adapter needs {distribution} {supported}, which is not installed. {how}") from None
    clauses = _CLAUSE.findall(supported)
    if not all(_COMPARE[operator](_release(installed), _release(version)) for operator, version in clauses):
        raise ImportError(f"This adapter supports {distribution} {supported}; {installed} is installed. {how}")
    return installed


def installed_name(*names: str) -> str:
    """The first of the names under which a trainer's package may be installed, or the last name if none is."""
    for name in names[:-1]:
        try:
            metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
        return name
    return names[-1]


def _release(version: str) -> tuple[int, ...]:
    """(1, 16) of `1.16.0`, `1.16rc1` and `1.16.0+cu128`."""
    found = re.match(r"[0-9]+(?:\.[0-9]+)*", version)
    parts = [int(part) for part in found[0].split(".")] if found else [0]
    while len(parts) > 1 and parts[-1] == 0:
        parts.pop()
    return tuple(parts)
