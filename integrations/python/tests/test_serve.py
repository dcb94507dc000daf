"""The server of Python libraries as its command line."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from typing import Any

import pytest

from palestra.serve.__main__ import bound
from palestra.serve.libraries import load_library
from palestra.serve.library import Options, UsageError
from palestra.serve.pool import Lost, Process


@pytest.mark.parametrize("spec", ["nothing:x", "reasoning-gym"])
def test_a_mistake_is_the_only_text_while_the_input_is_open(spec: str) -> None:
    command = [sys.executable, "-m", "palestra.serve", spec, "--end-with-input"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.wait(30) == 2
        assert process.stderr is not None
        assert len(process.stderr.read().splitlines()) == 1


async def test_a_part_of_an_answer_is_the_end_of_its_process() -> None:
    program = "import sys; sys.stdin.readline(); print('{\"id\": 1, ', end='')"
    pipes: dict[str, Any] = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE}
    worker = Process(await asyncio.create_subprocess_exec(sys.executable, "-c", program, **pipes), {})
    with pytest.raises(Lost, match="the process of the library ended with status 0"):
        await worker.request("call", [], 30)
    assert worker.lost is not None


def test_files_of_tasks_are_not_ignored() -> None:
    with pytest.raises(UsageError, match="^reasoning-gym has its own tasks: --data is for skyrl-gym and verifiers.$"):
        load_library("reasoning-gym", Options("leg_counting", data={"train": "rows.jsonl"}))


def test_an_address_of_another_program_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(UsageError, match=f"^Cannot listen on 127.0.0.1:{port}: Address already in use. Choose another"):
            bound("127.0.0.1", port)
