"""A worker process: runs the episodes of a library, one call at a time, on lines of JSON on its standard input and output.

A separate process, so that a library that hangs or ends its process takes neither the server nor the other workers with it.
"""

from __future__ import annotations

import json
import math
import os
import random
import signal
import sys
import traceback
from dataclasses import asdict
from typing import Any, TextIO

from palestra.serve.libraries import load_library
from palestra.serve.library import Episode, InvalidInput, Json, Library, Options, Output, Tool, UsageError


def tool_json(tool: Tool) -> Json:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}


def output_json(output: Output) -> Json:
    """The result of a call on the wire. Raises `ValueError` for a reward that is not a finite number."""
    if output.reward is not None and not math.isfinite(output.reward):
        raise ValueError(f"the reward is {output.reward}, which is not a finite number")
    blocks: list[Json] = []
    if output.text or not output.images:
        blocks.append({"type": "text", "text": output.text, "detail": None})
    blocks += [{"type": "image", "mimeType": kind, "data": data, "detail": None} for kind, data in output.images]
    return {"blocks": blocks, "metadata": output.metadata, "reward": output.reward, "finished": output.finished}


class Randomness:
    """The state of the global random generators of one episode. Libraries use them, and episodes must not disturb each other."""

    def __init__(self, seed: str) -> None:
        random.seed(seed)
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            numpy.random.seed(random.getrandbits(32))
        self.save()

    def save(self) -> None:
        numpy = sys.modules.get("numpy")
        self._python = random.getstate()
        self._numpy = None if numpy is None else numpy.random.get_state()

    def restore(self) -> None:
        random.setstate(self._python)
        if self._numpy is not None:
            sys.modules["numpy"].random.set_state(self._numpy)


class Worker:
    """The methods that the server calls."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._episodes: dict[str, tuple[Episode, Randomness]] = {}

    def describe(self) -> Json:
        library = self._library
        return {"splits": library.splits(), "tools": [tool_json(tool) for tool in library.tools], "terminal": library.terminal}

    def tasks(self, split: str, start: int, stop: int) -> list[Json]:
        return [{**self._library.task(split, index), "split": split, "index": index} for index in range(start, stop)]

    def open(self, sid: str, split: str, index: int) -> Json:
        randomness = Randomness(f"{split} {index}")
        episode = self._library.open(split, index)
        try:
            messages = episode.messages()
            tools = episode.tools()
        except BaseException:
            episode.close()
            raise
        randomness.save()
        self._episodes[sid] = (episode, randomness)
        return {"messages": messages, "tools": None if tools is None else [tool_json(tool) for tool in tools]}

    def call(self, sid: str, name: str, arguments: Json) -> Json:
        episode, randomness = self._episodes[sid]
        randomness.restore()
        try:
            return output_json(episode.call(name, arguments))
        finally:
            randomness.save()

    def close(self, sid: str) -> None:
        episode, _ = self._episodes.pop(sid, (None, None))
        if episode is not None:
            episode.close()


def respond(worker: Worker, line: str) -> Json:
    """Runs one request. A failure of the library is an answer, because the other episodes go on."""
    request = json.loads(line)
    try:
        return {"id": request["id"], "result": getattr(worker, request["method"])(*request["params"])}
    except InvalidInput as error:
        return {"id": request["id"], "invalid": str(error)}
    except Exception as error:
        traceback.print_exc()
        return {"id": request["id"], "error": f"{type(error).__name__}: {error}"[:2_000]}


def encode(answer: Json) -> str:
    """One line of JSON. Values of other types become text, NaN and infinities null."""
    try:
        try:
            return json.dumps(answer, default=str, allow_nan=False)
        except ValueError:
            return json.dumps(json.loads(json.dumps(answer, default=str), parse_constant=lambda _: None))
    except (TypeError, ValueError, RecursionError) as error:
        return json.dumps({"id": answer["id"], "error": f"the library returned what is not JSON: {error}"})


def run(lines: TextIO, answers: TextIO) -> None:
    """Answers requests until the input ends."""
    name, options = json.loads(lines.readline())
    try:
        worker = Worker(load_library(name, Options(**options)))
        first: Any = {"id": 0, "result": worker.describe()}
    except UsageError as error:
        first = {"id": 0, "usage": str(error)}
    except Exception as error:
        traceback.print_exc()
        first = {"id": 0, "error": f"{type(error).__name__}: {error}"[:2_000]}
    print(encode(first), file=answers, flush=True)
    if "result" not in first:
        return
    for line in lines:
        print(encode(respond(worker, line)), file=answers, flush=True)


def options_json(options: Options) -> Json:
    return asdict(options)


def end_with_parent() -> None:
    """Ends this process with the server, also while a library hangs (Linux)."""
    if sys.platform == "linux":
        import ctypes

        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def main() -> None:
    end_with_parent()
    # Ctrl-C is for the server, which then ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What a library prints goes to the log and not between the answers, and it reads no requests.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    lines = os.fdopen(os.dup(0), "r", encoding="utf-8")
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    run(lines, answers)


if __name__ == "__main__":
    main()
