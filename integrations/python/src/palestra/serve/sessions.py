"""The open sessions: bounded in number, in idle time and in calls at once."""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

from palestra.serve.library import InvalidInput, Json
from palestra.serve.pool import Failed, Lost, Pool, Process

#: Seconds without a request or a ping after which a session ends, as on the official server.
IDLE_S = 900.0

#: Seconds that the result of a call stays readable, for a client whose connection broke.
LINGER_S = 60.0

#: Seconds that a request waits for the setup of its session.
SETUP_WAIT_S = 25.0

MAX_CALLS = 32
SWEEP_S = 5.0


class Refused(Exception):
    """An error response."""

    def __init__(self, status: int, detail: Any, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = headers or {}


@dataclass(eq=False)
class Session:
    """An episode. `key` names it in its worker: a client may use an id again after it ended."""

    key: str = field(default_factory=lambda: uuid.uuid4().hex)
    worker: Process | None = None
    used_at: float = field(default_factory=time.monotonic)
    deleted: bool = False
    finished: bool = False
    calls: dict[str, asyncio.Task[Json]] = field(default_factory=dict)
    #: One call at a time, so that none can run after the one that finished the episode.
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    #: Resolves to the messages and tools of the episode.
    opening: asyncio.Future[Json] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def failure(self) -> BaseException | None:
        """Why the setup failed, or None while it runs and after it succeeded."""
        if not self.opening.done():
            return None
        return asyncio.CancelledError() if self.opening.cancelled() else self.opening.exception()


class Sessions:
    def __init__(self, pool: Pool, description: Json, limit: int, deadline_s: float) -> None:
        self._pool = pool
        self._names = {tool["name"] for tool in description["tools"]}
        self._limit = limit
        self._deadline_s = deadline_s
        self._open: dict[str, Session] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def create(self, sid: str, split: str, index: int) -> None:
        """Starts a session. Raises `Refused`."""
        if sid in self._open:
            raise Refused(400, "Session already exists")
        if len(self._open) + len(self._closing) >= self._limit:
            raise Refused(429, f"{self._limit} sessions are open, which is the limit of this server.", {"Retry-After": "2"})
        session = Session()
        session.opening = asyncio.ensure_future(self._setup(session, split, index))
        session.opening.add_done_callback(_read_error)
        self._open[sid] = session

    async def _setup(self, session: Session, split: str, index: int) -> Json:
        session.worker = await self._pool.place(session.key)
        if session.deleted:
            raise Refused(410, "Session deleted")
        opened: Json = await session.worker.request("open", [session.key, split, index], self._deadline_s)
        return opened

    def get(self, sid: str) -> Session:
        """Raises `Refused` for an unknown session."""
        session = self._open.get(sid)
        if session is None:
            raise Refused(404, "Active environment not found")
        session.used_at = time.monotonic()
        return session

    def alive(self, sid: str) -> Session:
        """Raises `Refused` for an unknown session, and for one that was lost with its worker."""
        session = self.get(sid)
        if session.failure() is None and session.worker is not None and session.worker.lost is not None:
            raise Refused(404, "Active environment not found")
        return session

    async def opened(self, session: Session) -> Json:
        """What the setup answered. Raises `Refused`: 503 while it runs, 500 if it failed."""
        done, _ = await asyncio.wait({session.opening}, timeout=SETUP_WAIT_S)
        if not done:
            raise Refused(503, "Environment still starting.", {"X-Backend-State": "starting", "Retry-After": "2"})
        error = session.failure()
        if error is None:
            return session.opening.result()
        if isinstance(error, Refused):
            raise error
        raise Refused(500, str(error) or type(error).__name__)

    def call(self, session: Session, name: str, arguments: Json) -> str:
        """Starts a call and returns its id. Raises `Refused`."""
        if sum(not task.done() for task in session.calls.values()) >= MAX_CALLS:
            raise Refused(429, f"{MAX_CALLS} calls of this session run already.", {"Retry-After": "1"})
        task_id = uuid.uuid4().hex
        task: asyncio.Task[Json] = asyncio.ensure_future(self._run(session, name, arguments))
        session.calls[task_id] = task
        loop = asyncio.get_running_loop()
        task.add_done_callback(_read_error)
        task.add_done_callback(lambda _: loop.call_later(LINGER_S, session.calls.pop, task_id, None))
        return task_id

    async def _run(self, session: Session, name: str, arguments: Json) -> Json:
        opened = await self.opened(session)
        names = self._names if opened["tools"] is None else {tool["name"] for tool in opened["tools"]}
        if name not in names:
            return {"ok": False, "error": f"{name!r} is not a valid tool", "reason": "not_found"}
        async with session.turn:
            if session.finished:
                error = f"{name!r} was not run: the episode has finished, so no further tool calls are accepted."
                return {"ok": False, "error": error, "reason": "episode_finished"}
            assert session.worker is not None
            try:
                output: Json = await session.worker.request("call", [session.key, name, arguments], self._deadline_s)
            except InvalidInput as error:
                return {"ok": False, "error": f"Tool input validation error: {error}", "reason": "input_validation"}
            session.finished = output["finished"]
            return {"ok": True, "output": output}

    def delete(self, sid: str) -> None:
        """Ends a session. Unknown ones are ended already."""
        session = self._open.pop(sid, None)
        if session is None:
            return
        session.deleted = True
        closing = asyncio.ensure_future(self._close(session))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def _close(self, session: Session) -> None:
        """Waits for the setup and the calls of the session, because its worker runs one request at a time."""
        await asyncio.wait({session.opening})
        if session.worker is None:
            return
        session.worker.episodes.discard(session.key)
        with contextlib.suppress(Failed, Lost):
            await session.worker.request("close", [session.key], self._deadline_s)

    async def sweep(self) -> None:
        """Ends idle sessions, for as long as the server runs."""
        while True:
            await asyncio.sleep(SWEEP_S)
            for sid, session in list(self._open.items()):
                if time.monotonic() - session.used_at > IDLE_S:
                    self.delete(sid)


def _read_error(future: asyncio.Future[Json]) -> None:
    """Reads the error of a future whose client left; asyncio would report it."""
    if not future.cancelled():
        future.exception()
