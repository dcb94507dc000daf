"""An unsupported Python is named."""

from __future__ import annotations

import ast
import re
import sys
from collections import namedtuple
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1]
SOURCE = PACKAGE / "src/palestra/__init__.py"
Version = namedtuple("Version", "major minor micro releaselevel serial")


def test_the_import_names_an_unsupported_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", Version(3, 9, 18, "final", 0))
    with pytest.raises(ImportError, match=r"needs Python 3\.10 or newer; this is Python 3\.9\."):
        exec(compile(SOURCE.read_text(), str(SOURCE), "exec"), {"__name__": "palestra"})


def test_python_3_6_compiles_the_check() -> None:
    ast.parse(SOURCE.read_text(), feature_version=(3, 6))


def test_the_installer_refuses_it_too() -> None:
    assert re.search(r'^requires-python = ">=3\.10"$', (PACKAGE / "pyproject.toml").read_text(), re.MULTILINE)
