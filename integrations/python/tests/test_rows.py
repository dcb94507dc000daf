"""The columns that each loader reads. What the service answers is in tests/conformance/python-package.spec.ts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from palestra import FORMATS, TaskRef, write_rows
from palestra.canonical import sha256_of
from palestra.messages import ToolSpec
from palestra.rows import GROUP_ROWS, TaskContent, content_of, row_of, rows

# What the service writes, too (libs/exports/src/row-formats.spec.ts).
FIXTURE = json.loads((Path(__file__).parents[3] / "tests/fixtures/task-rows.json").read_text(encoding="utf-8"))
TASKS = FIXTURE["tasks"]


def content(name: str) -> TaskContent:
    owner, _, env = FIXTURE["environment"].partition("/")
    task = TASKS[name]
    ref = TaskRef(owner, env, FIXTURE["split"], FIXTURE["index"], sha256_of(task["spec"]), FIXTURE["version"])
    tools = [ToolSpec(**tool) for tool in FIXTURE["tools"]]
    return content_of(ref, task["prompt"], task["conversation"], tools, FIXTURE["difficulty"])


TASK = content("plain")
EXPECTED = {format: json.loads(row) for format, row in TASKS["plain"]["rows"].items()}


def test_every_format_is_here() -> None:
    assert tuple(EXPECTED) == FORMATS


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("task", ["plain", "conversation"])
def test_columns(format: str, task: str) -> None:
    assert json.dumps(row_of(content(task), format)) == TASKS[task]["rows"][format]


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


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
@pytest.mark.parametrize("before", [0, 2 * GROUP_ROWS])
def test_an_error_of_the_rows_leaves_the_file_as_it_was(tmp_path: Path, ending: str, before: int) -> None:
    pytest.importorskip("pyarrow")
    file = tmp_path / f"train ü.{ending}"
    assert write_rows(file, [row_of(TASK, "trl")]) == 1
    written = file.read_bytes()

    def broken() -> Iterator[dict[str, Any]]:
        for _ in range(before):
            yield row_of(TASK, "trl")
        raise ValueError("the split is unknown")

    with pytest.raises(ValueError, match="the split is unknown"):
        write_rows(file, broken())
    assert file.read_bytes() == written
    assert list(tmp_path.iterdir()) == [file]


def test_a_link_to_a_file_stays(tmp_path: Path) -> None:
    (tmp_path / "data.jsonl").write_text("old")
    link = tmp_path / "latest.jsonl"
    link.symlink_to("data.jsonl")
    assert write_rows(link, [{"row": 1}]) == 1
    assert (link.is_symlink(), (tmp_path / "data.jsonl").read_text()) == (True, '{"row": 1}\n')


@pytest.mark.parametrize("format", [name for name in FORMATS if name != "nemo-gym"])
def test_parquet_gives_the_rows_back(tmp_path: Path, format: str) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "train.parquet"
    assert write_rows(file, [row_of(TASK, format)] * 2) == 2
    table = parquet.read_table(file)
    assert table.to_pylist() == [EXPECTED[format]] * 2
    assert table.schema.remove_metadata() == schema_of(FIXTURE["columns"][format])


def schema_of(columns: dict[str, Any]) -> Any:
    pa = pytest.importorskip("pyarrow")
    plain = {"text": pa.string(), "integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_()}
    plain["messages"] = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))

    def type_of(column: Any) -> Any:
        return plain[column] if isinstance(column, str) else pa.struct([(name, type_of(one)) for name, one in column.items()])

    return pa.schema([(name, type_of(column)) for name, column in columns.items()])


def test_parquet_types_do_not_depend_on_the_first_rows(tmp_path: Path) -> None:
    """Groups later than the first have values where it has none."""
    parquet = pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "train.parquet"
    known = row_of(TASK, "slime")
    facts = known["metadata"]["palestra"]
    unknown = {**known, "metadata": {"palestra": {**facts, "env_version": None, "avg_reward": None, "num_rollouts": None}}}
    written = [unknown] * GROUP_ROWS + [known] * 2
    assert write_rows(file, iter(written)) == GROUP_ROWS + 2
    assert parquet.read_table(file).to_pylist() == written


def test_rows_do_not_wait_in_memory(tmp_path: Path) -> None:
    """The writer reads no further ahead than one group."""
    parquet = pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "train.parquet"
    sizes: list[int] = []

    def lazily() -> Any:
        for index in range(4 * GROUP_ROWS):
            if index % GROUP_ROWS == 0:
                sizes.append(sum(one.stat().st_size for one in tmp_path.iterdir()))
            yield {**row_of(TASK, "trl"), "task_index": index}

    assert write_rows(file, lazily()) == 4 * GROUP_ROWS
    assert sizes == sorted(set(sizes))
    assert parquet.ParquetFile(file).metadata.num_row_groups == 4


def test_what_has_no_parquet(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow.parquet")
    with pytest.raises(ValueError, match="JSON lines only"):
        write_rows(tmp_path / "train.parquet", [row_of(TASK, "nemo-gym")])
    with pytest.raises(ValueError, match=r"more than text: calls, results or images. Use a file that ends in \.jsonl"):
        write_rows(tmp_path / "train.parquet", [row_of(content("conversation"), "trl")])
