"""The columns that each loader reads. What the service answers is in tests/conformance/python-package.spec.ts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from palestra import FORMATS, TaskRef, write_rows
from palestra.messages import ToolSpec
from palestra.rows import TaskContent, row_of, rows

FACTS = {
    "env_name": "palestra/math",
    "env_version": 2,
    "split": "train",
    "task_index": 4,
    "task_key": "k",
    "tool_schema_hash": "h",
}
TASK = TaskContent(
    TaskRef("palestra", "math", "train", 4, "k", 2),
    [{"role": "user", "content": "2+2?"}],
    [ToolSpec("submit", "Sends it", None)],
    "2+2?",
    FACTS,
)
SYSTEM = TASK.text_messages[0]["content"]
TEXT = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "2+2?"}]
CHAT = [{"role": "user", "content": "2+2?"}]
FUNCTION = {"name": "submit", "description": "Sends it", "parameters": {"type": "object", "properties": {}}}
TOOLS = [{"type": "function", "function": FUNCTION}]
FIVE = {"env_class": "openreward", "env_name": "palestra/math", "split": "train", "task_index": 4}

EXPECTED: dict[str, dict[str, Any]] = {
    "skyrl": {"prompt": TEXT, **FIVE, **FACTS},
    "skyrl-script": {"prompt": json.dumps(TEXT), **FIVE},
    "trl": {"prompt": CHAT, **FACTS},
    "verl": {
        "data_source": "palestra/math",
        "prompt": CHAT,
        "ability": "agent",
        "reward_model": {"style": "rule", "ground_truth": ""},
        "extra_info": {"index": 4, "split": "train", "need_tools_kwargs": False},
        "agent_name": "palestra_agent",
        **FACTS,
    },
    "slime": {"prompt": CHAT, "label": "", "metadata": {"palestra": FACTS}, "tools": json.dumps(TOOLS)},
    "miles": {"prompt": CHAT, "label": "", "metadata": {"palestra": FACTS}, "tools": json.dumps(TOOLS)},
    "tinker": {"palestra": FACTS},
    "openrlhf": {"input": TEXT, "label": json.dumps(FACTS), "datasource": "palestra/math", **FACTS},
    "areal": {"messages": CHAT, "answer": "", "palestra": FACTS},
    "nemo-gym": {
        "responses_create_params": {"input": CHAT, "tools": [{"type": "function", **FUNCTION, "strict": False}]},
        "agent_ref": {"type": "responses_api_agents", "name": "palestra_agent"},
        "verifier_metadata": {"palestra": FACTS},
        "palestra": FACTS,
    },
    "rllm": {"question": "2+2?", "instruction": "2+2?", **FACTS},
    "inspect": {"id": "palestra/math:train:4", "input": CHAT, "target": "", "metadata": FACTS},
    "messages": {"messages": CHAT, "metadata": FACTS},
}


def test_every_format_is_here() -> None:
    assert tuple(EXPECTED) == FORMATS


@pytest.mark.parametrize("format", FORMATS)
def test_columns(format: str) -> None:
    assert row_of(TASK, format) == EXPECTED[format]


def test_the_order_of_skyrls_script() -> None:
    assert list(row_of(TASK, "skyrl-script")) == ["prompt", "env_class", "env_name", "split", "task_index"]


def test_unknown_formats_are_named_before_anything_is_read() -> None:
    with pytest.raises(ValueError, match="Unknown format 'trainer'. Available: skyrl, skyrl-script"):
        rows("palestra/math", "trainer")


def test_json_lines(tmp_path: Path) -> None:
    file = tmp_path / "train.jsonl"
    assert write_rows(file, (row_of(TASK, "messages") for _ in range(3))) == 3
    lines = file.read_text().splitlines()
    assert [json.loads(line) for line in lines] == [EXPECTED["messages"]] * 3
    with pytest.raises(ValueError, match=r"Available: \.jsonl, \.parquet"):
        write_rows(tmp_path / "train.csv", [])


@pytest.mark.parametrize("format", [name for name in FORMATS if name != "nemo-gym"])
def test_parquet_gives_the_rows_back(tmp_path: Path, format: str) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "train.parquet"
    write_rows(file, [row_of(TASK, format)] * 2)
    assert parquet.read_table(file).to_pylist() == [EXPECTED[format]] * 2


def test_nemo_gym_has_no_parquet(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow.parquet")
    with pytest.raises(ValueError, match="JSON lines only"):
        write_rows(tmp_path / "train.parquet", [row_of(TASK, "nemo-gym")])
