from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

FOLDERS = [str(Path(__file__).parents[1] / "src"), str(Path(__file__).parent)]
sys.path[:0] = FOLDERS
# For the programs that tests start.
os.environ["PYTHONPATH"] = os.pathsep.join([*FOLDERS, *filter(None, [os.environ.get("PYTHONPATH")])])

from service import Service  # noqa: E402

from palestra import upload  # noqa: E402

FIXTURES = Path(__file__).parents[3] / "tests/fixtures"


@pytest.fixture
def service() -> Iterator[Service]:
    running = Service()
    yield running
    running.close()


@pytest.fixture(autouse=True)
def quick_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits between repeats are of no interest here."""
    monkeypatch.setattr(upload, "_FIRST_WAIT_S", 0.01)
    monkeypatch.setattr(upload, "_LONGEST_WAIT_S", 0.02)
    for name in ("PALESTRA_URL", "PALESTRA_API_KEY", "OPENREWARD_URL", "OPENREWARD_API_URL", "OPENREWARD_API_KEY", "PALESTRA_SPOOL_DIR"):
        monkeypatch.delenv(name, raising=False)
