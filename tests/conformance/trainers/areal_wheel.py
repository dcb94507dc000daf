"""AReaL of its wheel, without the engines, accelerators and clusters that its packages import when they are imported."""

from __future__ import annotations

import os
import sys
import types
from pathlib import Path

WHEEL = Path(os.environ["PALESTRA_TRAINERS_DIR"]) / "areal"
sys.path.append(str(WHEEL))


def package(name: str) -> types.ModuleType:
    """A package of the wheel whose own __init__ does not run."""
    module = types.ModuleType(name)
    module.__path__ = [str(WHEEL / name.replace(".", "/"))]
    sys.modules[name] = module
    return module
