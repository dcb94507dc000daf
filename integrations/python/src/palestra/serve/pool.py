"""Worker processes with a deadline for each call."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import dataclass, field
from typing import Any

from palestra.serve.library import InvalidInput, Json, Options, UsageError
from palestra.serve.worker import options_json

#: Largest answer of a worker, in bytes. The service takes answers of up to 64 MiB.
MAX_ANSWER_BYTES = 64 * 1024 * 1024

#: Seconds for the import of a library; verifiers takes half a minute on a busy machine.
START_S = 180.0


class Failed(Exception):
    """The library raised. The episode can go on."""


class Lost(Exception):
    """The worker ended, or was ended at a deadline. All its episodes are lost."""


@dataclass(eq=False)
class Process:
    """A running worker. Requests wait for each other, so that a deadline counts the time of one request."""

    process: asyncio.subprocess.Process
    description: Json
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    episodes: set[str] = field(default_factory=set)
    #: Why it ended.
    lost: str | None = None
    requests: int = 0

    @classmethod
    async def start(cls, library: str, options: Options) -> Process:
        """Raises `UsageError` for a wrong specification, `Lost` if the library cannot be imported."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "palestra.serve.worker",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=MAX_ANSWER_BYTES,
        )
        worker = cls(process, {})
        try:
            answer = await asyncio.wait_for(worker._exchange([library, options_json(options)]), START_S)
            if "usage" in answer:
                raise UsageError(answer["usage"])
            if "result" not in answer:
                raise Lost(f"{library} could not be loaded: {answer['error']}")
        except asyncio.TimeoutError:
            await worker.stop("the library was not loaded in time")
            raise Lost(f"{library} was not loaded within {START_S:g} s") from None
        except BaseException:
            await worker.stop("the library was not loaded")
            raise
        worker.description = answer["result"]
        return worker

    async def request(self, method: str, params: list[Any], deadline_s: float) -> Any:
        """Raises `Failed`, `InvalidInput` or `Lost`."""
        async with self.lock:
            if self.lost is not None:
                raise Lost(self.lost)
            self.requests += 1
            message = {"id": self.requests, "method": method, "params": params}
            try:
                answer = await asyncio.wait_for(self._exchange(message), deadline_s)
            except asyncio.TimeoutError:
                await self.stop(f"the library did not return within {deadline_s:g} s, so its process was ended")
                raise Lost(self.lost) from None
            except asyncio.CancelledError:
                await self.stop("the server stopped")
                raise
        if "invalid" in answer:
            raise InvalidInput(answer["invalid"])
        if "error" in answer:
            raise Failed(answer["error"])
        return answer["result"]

    async def _exchange(self, message: Any) -> Json:
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            await self.process.stdin.drain()
            line = await self.process.stdout.readline()
        except (OSError, ValueError) as error:
            await self.stop(f"the process of the library can no longer be used ({error})")
            raise Lost(self.lost) from error
        # Without its end, it is part of an answer of a process that was killed.
        if not line.endswith(b"\n"):
            code = await self.process.wait()
            await self.stop(f"the process of the library ended with status {code}")
            raise Lost(self.lost)
        answer: Json = json.loads(line)
        return answer

    async def stop(self, reason: str) -> None:
        """Ends the process at once. Idempotent."""
        self.lost = self.lost or reason
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()


class Pool:
    """Up to `size` workers. An episode stays in the worker that opened it."""

    def __init__(self, library: str, options: Options, size: int) -> None:
        self._library = library
        self._options = options
        self._size = size
        self._workers: list[Process] = []
        self._starting = asyncio.Lock()

    async def start(self) -> Json:
        """Starts the first worker and returns what the library offers."""
        return (await self.any()).description

    async def any(self) -> Process:
        """A worker for a request without an episode."""
        async with self._starting:
            self._forget_lost()
            if not self._workers:
                self._workers.append(await Process.start(self._library, self._options))
            return min(self._workers, key=lambda worker: len(worker.episodes))

    async def place(self, sid: str) -> Process:
        """The worker for a new episode: the one with the fewest, or a new one while all have some."""
        async with self._starting:
            self._forget_lost()
            worker = min(self._workers, key=lambda candidate: len(candidate.episodes), default=None)
            if worker is None or (worker.episodes and len(self._workers) < self._size):
                worker = await Process.start(self._library, self._options)
                self._workers.append(worker)
            worker.episodes.add(sid)
            return worker

    def _forget_lost(self) -> None:
        self._workers = [worker for worker in self._workers if worker.lost is None and worker.process.returncode is None]

    async def close(self) -> None:
        """Ends all workers."""
        await asyncio.gather(*(worker.stop("the server stopped") for worker in self._workers))
