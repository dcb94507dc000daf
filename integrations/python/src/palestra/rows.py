"""Tasks as rows of the data sets that trainers load (the columns are those that each loader reads)."""

from __future__ import annotations

import concurrent.futures
import contextlib
import itertools
import json
import os
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palestra import background
from palestra.canonical import sha256_of
from palestra.client import Client, environment_path
from palestra.failures import Failure, failure_of
from palestra.messages import Message, ToolSpec, openai_messages, text_of
from palestra.tasks import TaskRef, iter_tasks
from palestra.text import system_prompt

Row = dict[str, Any]


@dataclass(frozen=True)
class TaskContent:
    """What a session shows of a task before its first call."""

    ref: TaskRef
    messages: list[Message]
    tools: list[ToolSpec]
    prompt_text: str
    """The text blocks of the prompt, joined without a separator, as SkyRL's script has them."""
    facts: dict[str, Any]
    """Facts that every format but `skyrl-script` carries: `env_name`, `env_version`, `split`, `task_index`, `task_key`, `tool_schema_hash`;
    `variant` if there is one; with `difficulty` also `avg_reward` and `num_rollouts`.
    """

    @property
    def text_messages(self) -> list[Message]:
        """The prompt for models that call by text: SkyRL's system prompt with the tools, then the task."""
        return [{"role": "system", "content": system_prompt(self.tools)}, {"role": "user", "content": self.prompt_text}]

    @property
    def openai_tools(self) -> list[dict[str, Any]]:
        return [tool.to_openai() for tool in self.tools]


def content_of(
    ref: TaskRef,
    prompt: Sequence[Mapping[str, Any]],
    conversation: Sequence[Mapping[str, Any]],
    tools: Sequence[ToolSpec],
    difficulty: Mapping[str, Any] | None = None,
) -> TaskContent:
    """From what a session answers. `difficulty`: further facts."""
    schema = [{"name": tool.name, "description": tool.description, "input_schema": tool.input_schema} for tool in tools]
    facts = {
        "env_name": ref.environment,
        "env_version": ref.version,
        "split": ref.split,
        "task_index": ref.index,
        "task_key": ref.key,
        "tool_schema_hash": sha256_of(schema),
        **({"variant": ref.variant} if ref.variant else {}),
        **(difficulty or {}),
    }
    return TaskContent(ref, openai_messages(conversation), list(tools), text_of(prompt), facts)


def _skyrl_script(task: TaskContent) -> Row:
    return {**_skyrl(task), "prompt": json.dumps(task.text_messages)}


def _skyrl(task: TaskContent) -> Row:
    ref = task.ref
    place = {"env_name": ref.environment, "split": ref.split, "task_index": ref.index}
    return {"prompt": task.text_messages, "env_class": "openreward", **place}


def _trl(task: TaskContent) -> Row:
    return {"prompt": task.messages, "task_index": task.ref.index}


def _verl(task: TaskContent) -> Row:
    ref = task.ref
    return {
        "data_source": ref.environment,
        "prompt": task.messages,
        "ability": "agent",
        "reward_model": {"style": "rule", "ground_truth": ""},
        "extra_info": {"index": ref.index, "split": ref.split, "need_tools_kwargs": False},
        "agent_name": "palestra_agent",
    }


def _slime(task: TaskContent) -> Row:
    # JSON text, which both accept: Parquet would merge the schemas of all tools into one.
    return {"prompt": task.messages, "label": "", "metadata": {"palestra": task.facts}, "tools": json.dumps(task.openai_tools)}


def _tinker(task: TaskContent) -> Row:
    return {"palestra": task.facts}


def _openrlhf(task: TaskContent) -> Row:
    # The label is the only column that reaches an environment there.
    return {"input": task.text_messages, "label": json.dumps(task.facts), "datasource": task.ref.environment}


def _areal(task: TaskContent) -> Row:
    return {"messages": task.messages, "answer": "", "palestra": task.facts}


def _nemo_gym(task: TaskContent) -> Row:
    # The Responses API has the fields of a function beside its type.
    tools = [{"type": "function", **tool["function"], "strict": False} for tool in task.openai_tools]
    return {
        "responses_create_params": {"input": task.messages, "tools": tools},
        "agent_ref": {"type": "responses_api_agents", "name": "palestra_agent"},
        "verifier_metadata": {"palestra": task.facts},
        "palestra": task.facts,
    }


def _rllm(task: TaskContent) -> Row:
    # No id: rLLM splits ids at colons, uses them in URLs, and makes a new one for each group of a row without an id.
    return {"question": task.prompt_text, "instruction": task.prompt_text}


def _inspect(task: TaskContent) -> Row:
    return {"id": _id(task.ref), "input": task.messages, "target": "", "metadata": task.facts}


def _messages(task: TaskContent) -> Row:
    return {"messages": task.messages, "metadata": task.facts}


def _id(ref: TaskRef) -> str:
    return f"{ref.environment}:{ref.split}:{ref.index}"


@dataclass(frozen=True)
class _Format:
    row: Callable[[TaskContent], Row]
    facts_beside: bool
    """The facts are separate columns, which the trainer passes on to the environment."""


_FORMATS: dict[str, _Format] = {
    "skyrl": _Format(_skyrl, True),
    "skyrl-script": _Format(_skyrl_script, False),
    "trl": _Format(_trl, True),
    "verl": _Format(_verl, True),
    "slime": _Format(_slime, False),
    "miles": _Format(_slime, False),
    "tinker": _Format(_tinker, False),
    "openrlhf": _Format(_openrlhf, True),
    "areal": _Format(_areal, False),
    "nemo-gym": _Format(_nemo_gym, False),
    "rllm": _Format(_rllm, True),
    "inspect": _Format(_inspect, False),
    "messages": _Format(_messages, False),
}
FORMATS: tuple[str, ...] = tuple(_FORMATS)
"""The formats that `rows` accepts."""


def row_of(task: TaskContent, format: str) -> Row:
    """One row. Raises ValueError for an unknown format."""
    known = _FORMATS.get(format)
    if known is None:
        raise ValueError(f"Unknown format {format!r}. Available: {', '.join(FORMATS)}.")
    row = known.row(task)
    return {**row, **{name: value for name, value in task.facts.items() if name not in row}} if known.facts_beside else row


def rows(
    tasks: str | Iterable[TaskRef],
    format: str,
    *,
    split: str = "train",
    stop: int | None = None,
    client: Client | None = None,
    concurrency: int = 8,
    difficulty: bool = False,
    on_failure: Callable[[TaskRef, Failure], None] | None = None,
) -> Iterator[Row]:
    """Rows in the order of the tasks. For each task a session is opened to read its prompt and tools, `concurrency` at a time and no
    further ahead of the reader.

    Args:
        tasks: `owner/name`, whose tasks of `split` up to `stop` (exclusive) are read; or references.
        format: one of `FORMATS`. `skyrl-script` equals the rows of SkyRL's own script and of the service's export byte for byte.
        difficulty: also the mean reward and the number of your rollouts of each task (None without any), which change over time.
        on_failure: gets each task that cannot be read, which is left out then. By default the failure is raised.
    """
    if format not in _FORMATS:
        raise ValueError(f"Unknown format {format!r}. Available: {', '.join(FORMATS)}.")
    connection = client or Client()
    refs = iter_tasks(tasks, split, stop=stop, client=connection) if isinstance(tasks, str) else iter(tasks)
    return _rows(refs, format, _Reader(connection, difficulty), concurrency, on_failure)


def _rows(
    refs: Iterator[TaskRef],
    format: str,
    reader: _Reader,
    concurrency: int,
    on_failure: Callable[[TaskRef, Failure], None] | None,
) -> Iterator[Row]:
    window: deque[tuple[TaskRef, concurrent.futures.Future[TaskContent]]] = deque()
    try:
        for ref in refs:
            window.append((ref, background.worker.submit(reader.read(ref))))
            if len(window) >= max(concurrency, 1):
                yield from _first(window, format, on_failure)
        while window:
            yield from _first(window, format, on_failure)
    finally:
        for _, future in window:
            future.cancel()


def _first(
    window: deque[tuple[TaskRef, concurrent.futures.Future[TaskContent]]],
    format: str,
    on_failure: Callable[[TaskRef, Failure], None] | None,
) -> Iterator[Row]:
    ref, future = window.popleft()
    try:
        content = future.result()
    except Failure as failure:
        if on_failure is None:
            raise
        on_failure(ref, failure)
        return
    yield row_of(content, format)


class _Reader:
    """Reads tasks through sessions, and the difficulty of the tasks of an environment once."""

    def __init__(self, client: Client, difficulty: bool) -> None:
        self._client = client
        self._wants_difficulty = difficulty
        self._difficulty: dict[tuple[str, str, str | None], dict[int, Mapping[str, Any]]] = {}

    async def read(self, ref: TaskRef) -> TaskContent:
        # Pings are for episodes that wait for a model.
        options: dict[str, Any] = {"split": ref.split, "index": ref.index, "variant": ref.variant, "ping_s": 0}
        try:
            async with self._client.session(ref.environment, **options) as session:
                blocks = await session.prompt()
                conversation = await session.messages()
                tools = await session.tools()
        except Failure:
            raise
        except Exception as error:
            raise failure_of(error) from error
        difficulty = await self._difficulty_of(ref) if self._wants_difficulty else {}
        return content_of(ref, blocks, conversation, tools, difficulty)

    async def _difficulty_of(self, ref: TaskRef) -> dict[str, Any]:
        key = (ref.environment, ref.split, ref.variant)
        if key not in self._difficulty:
            path = f"{environment_path(ref.environment)}/task-difficulty"
            told = await self._client.get(path, split=ref.split, variant=ref.variant)
            self._difficulty[key] = {task["task_index"]: task for task in told["tasks"]}
        known = self._difficulty[key].get(ref.index, {})
        return {"avg_reward": known.get("avg_reward"), "num_rollouts": known.get("num_rollouts")}


def write_rows(path: str | Path, rows: Iterable[Row]) -> int:
    """Writes rows to a `.jsonl` file, or with `pip install palestra[parquet]` to a `.parquet` file, and returns their number.

    In constant memory. Raises ValueError for another ending, and in Parquet for a prompt with more than text. After an error, also of `rows`,
    an existing file is what it was.
    """
    file = Path(path)
    if file.suffix not in (".jsonl", ".parquet"):
        raise ValueError(f"Unknown ending of {file.name!r}. Available: .jsonl, .parquet.")
    # A link stays a link.
    target = Path(os.path.realpath(file))
    write = _write_lines if file.suffix == ".jsonl" else _write_parquet
    if target.exists() and not target.is_file():  # Such as a pipe.
        return write(target, rows)
    partial = target.with_name(f".{target.name}.{uuid.uuid4().hex}.partial")
    try:
        count = write(partial, rows)
        partial.replace(target)
    finally:
        with contextlib.suppress(FileNotFoundError):
            partial.unlink()
    return count


def _write_lines(file: Path, rows: Iterable[Row]) -> int:
    count = 0
    with file.open("w", encoding="utf-8") as lines:
        for row in rows:
            lines.write(json.dumps(row) + "\n")
            count += 1
    return count


GROUP_ROWS = 1_000
"""Rows of a group in a Parquet file: what is in memory at a time."""


def _write_parquet(file: Path, rows: Iterable[Row]) -> int:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ImportError("Parquet needs pyarrow: pip install 'palestra[parquet]'") from error
    remaining = iter(rows)
    group = list(itertools.islice(remaining, GROUP_ROWS))
    if group and "responses_create_params" in group[0]:
        raise ValueError("NeMo Gym reads JSON lines only: use a file that ends in .jsonl.")
    # The types are known before the second group, because a file cannot change them later.
    schema = pa.schema([(name, _type_of(name, [row.get(name) for row in group])) for name in (group[0] if group else {})])
    count = 0
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        while group:
            if problem := next((problem for row in group if (problem := _parquet_problem(row))), None):
                raise ValueError(problem)
            writer.write_table(pa.Table.from_pylist(group, schema))
            count += len(group)
            group = list(itertools.islice(remaining, GROUP_ROWS))
    return count


_INTEGERS = {"env_version", "task_index", "num_rollouts", "index"}
_NUMBERS = {"avg_reward"}
_TEXTS = {"task_key", "variant"}


def _type_of(name: str, values: list[Any]) -> Any:
    """The type of a column: by its name where a value may be missing, else that of the values."""
    import pyarrow as pa

    known = [value for value in values if value is not None]
    if name in _INTEGERS:
        return pa.int64()
    if name in _NUMBERS:
        return pa.float64()
    if name in _TEXTS:
        return pa.string()
    if known and isinstance(known[0], dict):
        return pa.struct([(field, _type_of(field, [value.get(field) for value in known])) for field in known[0]])
    if known and _is_messages(known[0]):
        return pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))
    return pa.array(values).type


def _is_messages(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict) and "role" in value[0]


def _parquet_problem(row: Row) -> str | None:
    messages = [message for value in row.values() if _is_messages(value) for message in value]
    if all(set(message) == {"role", "content"} and isinstance(message["content"], str) for message in messages):
        return None
    return "A prompt has more than text: calls, results or images. Use a file that ends in .jsonl."
