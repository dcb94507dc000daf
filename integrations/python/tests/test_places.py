from __future__ import annotations

import json
from importlib import metadata
from typing import Any

import pytest

from palestra import TaskRef, task_of
from palestra.versions import installed_name, require

FACTS = {"env_name": "acme/maze", "env_version": 3, "split": "train", "task_index": 7, "task_key": "ab"}
TASK = TaskRef("acme", "maze", "train", 7, "ab", 3)


@pytest.mark.parametrize(
    "row",
    [
        {"prompt": [], **FACTS},
        {"palestra": FACTS},
        {"metadata": {"palestra": FACTS}},
        {"metadata": FACTS},
        {"verifier_metadata": {"palestra": FACTS}},
        {"label": json.dumps(FACTS)},
        {"extra_info": FACTS},
        # As a data frame has them.
        {**FACTS, "task_index": 7.0, "env_version": 3.0},
    ],
)
def test_the_task_of_a_row_of_each_format(row: dict[str, Any]) -> None:
    assert task_of(row) == TASK


def test_rows_of_the_script_of_skyrl_have_no_key() -> None:
    task = task_of({"env_name": "acme/maze", "split": "train", "task_index": 7})
    assert (task.key, task.version, task.environment) == ("", None, "acme/maze")


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"prompt": "x", "label": "{"}, "no env_name. Its columns: label, prompt"),
        ({"env_name": "maze", "split": "train", "task_index": 1}, "owner/name"),
        ({"env_name": "acme/maze", "split": "train"}, "task_index None"),
    ],
)
def test_a_row_without_a_task_says_what_is_missing(row: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        task_of(row)


def test_versions_of_trainers(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = {"trl": "1.16.0", "verl": "0.9.1rc2+cu128"}

    def version(name: str) -> str:
        if name not in installed:
            raise metadata.PackageNotFoundError(name)
        return installed[name]

    monkeypatch.setattr(metadata, "version", version)
    assert require("trl", ">=1.16,<1.17", extra="trl") == "1.16.0"
    assert require("verl", ">=0.9.1,<0.10", extra="verl")
    with pytest.raises(ImportError, match=r"supports trl >=1\.17,<2; 1\.16\.0 is installed\. .*palestra\[trl\]"):
        require("trl", ">=1.17,<2", extra="trl")
    with pytest.raises(ImportError, match="needs art >=1, which is not installed"):
        require("art", ">=1", extra="art")
    with pytest.raises(ImportError, match=r"needs slime >=1, which is not installed\. .*docs/trainers"):
        require("slime", ">=1", extra=None)
    assert [installed_name("trl", "verl"), installed_name("art", "verl"), installed_name("miles", "miles-rl")] == ["trl", "verl", "miles-rl"]
