"""The routes of the Open Reward Standard (docs/reference/ors.md) in front of a pool of workers.

Not the server of the package `openreward`: it cannot be installed beside verifiers, whose packages it pins to other versions.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from palestra.serve.library import Json
from palestra.serve.pool import Failed, Lost, Pool
from palestra.serve.sessions import Refused, Sessions

#: Largest request, in bytes: the arguments of a call are text of a model.
MAX_BODY_BYTES = 8 * 1024 * 1024

#: Tasks of one answer. Clients page through more.
MAX_TASKS = 100_000

#: Pieces of a result, and the time between two signs of life, as on the official server.
PIECE_CHARACTERS = 4_096
HEARTBEAT_S = 10.0

STREAM_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}

SPLIT_TYPES = ("train", "validation", "test")

Handler = Callable[[Request], Awaitable[Response]]


class Server:
    """The requests of one environment."""

    def __init__(self, name: str, version: str, description: Json, pool: Pool, sessions: Sessions, deadline_s: float) -> None:
        self._name = name
        self._version = version
        self._description = description
        self._splits: dict[str, int] = description["splits"]
        self._pool = pool
        self._sessions = sessions
        self._deadline_s = deadline_s

    def app(self) -> Starlette:
        """The application. Ends its sessions and workers when it stops."""
        routes: list[tuple[str, str, Handler]] = [
            ("GET", "/health", self.health),
            ("GET", "/version", self.version),
            ("GET", "/list_environments", self.environments),
            ("POST", "/create_session", self.create_session),
            ("POST", "/create", self.create),
            ("POST", "/ping", self.ping),
            ("POST", "/delete", self.delete),
            ("POST", "/delete_session", self.delete_session),
        ]
        for prefix in ("", "/{env}"):
            routes += [
                ("GET", f"{prefix}/tools", self.tools),
                ("GET", f"{prefix}/splits", self.splits),
                ("POST", f"{prefix}/tasks", self.tasks),
                ("POST", f"{prefix}/num_tasks", self.num_tasks),
                ("POST", f"{prefix}/task", self.task),
                ("POST", f"{prefix}/task_range", self.task_range),
                ("GET", f"{prefix}/prompt", self.prompt),
                ("GET", f"{prefix}/messages", self.messages),
                ("GET", f"{prefix}/task_tools", self.task_tools),
                ("POST", f"{prefix}/call", self.call),
            ]
        return Starlette(
            routes=[Route(path, self._named(handler), methods=[method]) for method, path, handler in routes],
            lifespan=self._lifespan,
            exception_handlers={Refused: refused, Failed: failed, Lost: failed},
        )

    def _named(self, handler: Handler) -> Handler:
        """The handler, for paths of this environment and paths without a name."""

        async def handle(request: Request) -> Response:
            name = request.path_params.get("env", self._name)
            if name.lower() != self._name:
                raise Refused(404, f"unknown environment {name!r}")
            return await handler(request)

        return handle

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        sweeper = asyncio.create_task(self._sessions.sweep())
        try:
            yield
        finally:
            sweeper.cancel()
            await self._pool.close()

    async def health(self, _: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def version(self, _: Request) -> Response:
        return JSONResponse({"version": self._version, "build_sha": None})

    async def environments(self, _: Request) -> Response:
        return JSONResponse([self._name])

    async def tools(self, _: Request) -> Response:
        return JSONResponse(self._tools(None))

    def _tools(self, tools: list[Json] | None) -> Json:
        listed: list[Json] = self._description["tools"] if tools is None else tools
        terminal = self._description["terminal"]
        named = None if terminal is None else next((tool for tool in listed if tool["name"] == terminal[0]), None)
        return {
            "tools": listed,
            "terminal_tool": None
            if named is None
            else {"name": named["name"], "arg": terminal[1], "description": named["description"]},
            "supports_score_group": False,
            "message_block_types": ["text", "image"],
        }

    async def splits(self, _: Request) -> Response:
        return JSONResponse([{"name": name, "type": name if name in SPLIT_TYPES else "validation"} for name in self._splits])

    async def tasks(self, request: Request) -> Response:
        split = self._split(await body_of(request))
        return await self._range(split, 0, self._splits[split])

    async def num_tasks(self, request: Request) -> Response:
        return JSONResponse({"num_tasks": self._splits[self._split(await body_of(request))]})

    async def task(self, request: Request) -> Response:
        body = await body_of(request)
        split, index = self._split(body), self._index(body)
        (task,) = await self._read_tasks(split, index, index + 1)
        return JSONResponse({"task": task, "env_name": self._name})

    async def task_range(self, request: Request) -> Response:
        body = await body_of(request)
        split = self._split(body)
        start, stop = body.get("start"), body.get("stop")
        if any(value is not None and type(value) is not int for value in (start, stop)):
            raise Refused(400, "Invalid index range")
        start, stop, _ = slice(start, stop).indices(self._splits[split])
        return await self._range(split, start, stop)

    async def _range(self, split: str, start: int, stop: int) -> Response:
        if stop - start > MAX_TASKS:
            raise Refused(400, f"Invalid index range: at most {MAX_TASKS} tasks at once. Use num_tasks and task_range.")
        tasks = await self._read_tasks(split, start, stop) if start < stop else []
        return JSONResponse({"tasks": tasks, "env_name": self._name})

    async def _read_tasks(self, split: str, start: int, stop: int) -> list[Json]:
        worker = await self._pool.any()
        tasks: list[Json] = await worker.request("tasks", [split, start, stop], self._deadline_s)
        return tasks

    def _split(self, body: Json) -> str:
        split = body.get("split")
        if not isinstance(split, str) or split not in self._splits:
            raise Refused(400, "Invalid split")
        return split

    def _index(self, body: Json) -> int:
        """A position as Python's lists have it: -1 is the last task."""
        index, count = body.get("index"), self._splits[self._split(body)]
        if type(index) is not int or not -count <= index < count:
            raise Refused(400, "Invalid index")
        return index % count

    async def create_session(self, _: Request) -> Response:
        sid = str(uuid.uuid4())
        pieces = [event("task_id", sid), event("end", "")]
        return Response("".join(pieces), media_type="text/event-stream", headers=STREAM_HEADERS)

    async def create(self, request: Request) -> Response:
        sid, body = sid_of(request), await body_of(request)
        spec = body.get("task_spec")
        has_index = body.get("split") is not None and body.get("index") is not None
        if (spec is not None) == has_index:
            raise Refused(422, validation_error("Provide either task_spec or both split and index, not both/neither"))
        if str(body.get("env_name") or self._name).lower() != self._name:
            raise Refused(404, f"unknown environment {body['env_name']!r}")
        if body.get("toolset_name") is not None:
            raise Refused(400, f"unknown toolset {body['toolset_name']!r}; this server has no toolsets")
        chosen = body if spec is None else spec
        if not isinstance(chosen, dict):
            raise Refused(422, validation_error("task_spec must be an object"))
        self._sessions.create(sid, self._split(chosen), self._index(chosen))
        return JSONResponse({"sid": sid})

    async def ping(self, request: Request) -> Response:
        self._sessions.alive(sid_of(request))
        return JSONResponse({"status": "ok"})

    async def delete(self, request: Request) -> Response:
        sid = sid_of(request)
        self._sessions.delete(sid)
        return JSONResponse({"sid": sid})

    async def delete_session(self, request: Request) -> Response:
        return JSONResponse({"sid": sid_of(request)})

    async def _opened(self, request: Request) -> Json:
        return await self._sessions.opened(self._sessions.alive(sid_of(request)))

    async def prompt(self, request: Request) -> Response:
        """A single user message as it is; otherwise each message begins with its role."""
        messages = (await self._opened(request))["messages"]
        if len(messages) == 1 and messages[0]["role"] == "user":
            return JSONResponse([text_block(messages[0]["content"])])
        return JSONResponse([text_block(text) for message in messages for text in (f"[{message['role']}]", message["content"])])

    async def messages(self, request: Request) -> Response:
        messages = (await self._opened(request))["messages"]
        return JSONResponse(
            [{"role": message["role"], "blocks": [text_block(message["content"])], "detail": None} for message in messages]
        )

    async def task_tools(self, request: Request) -> Response:
        return JSONResponse(self._tools((await self._opened(request))["tools"]))

    async def call(self, request: Request) -> Response:
        sid, body = sid_of(request), await body_of(request)
        task_id, name, arguments = body.get("task_id"), body.get("name"), body.get("input")
        if not isinstance(name, str) or not isinstance(arguments, dict):
            raise Refused(422, validation_error("Provide name, a string, and input, an object"))
        session = self._sessions.get(sid)
        if task_id is None:
            # An error of the setup is the status of the response, as on the official server.
            await self._sessions.opened(self._sessions.alive(sid))
            task_id = self._sessions.call(session, name, arguments)
        return StreamingResponse(stream(task_id, session.calls.get(task_id)), media_type="text/event-stream", headers=STREAM_HEADERS)


async def stream(task_id: str, task: asyncio.Task[Json] | None) -> AsyncIterator[str]:
    """The events of a call. The call goes on when the client leaves."""
    if task is None:
        yield event("error", "unknown task_id")
        return
    yield event("task_id", task_id)
    while not (await asyncio.wait({task}, timeout=HEARTBEAT_S))[0]:
        yield ": ping\r\n\r\n"
    error = asyncio.CancelledError() if task.cancelled() else task.exception()
    if error is not None:
        yield event("error", str(error) or type(error).__name__)
        return
    text = json.dumps(task.result(), separators=(",", ":"))
    start = 0
    while True:
        stop = min(start + PIECE_CHARACTERS, len(text))
        # Clients strip whitespace at the start of a piece.
        while stop < len(text) and text[stop].isspace():
            stop += 1
        yield event("end" if stop == len(text) else "chunk", text[start:stop])
        if stop == len(text):
            return
        start = stop


def event(name: str, data: str) -> str:
    """An event of one line: a line break within data would begin another field."""
    return f"event: {name}\r\ndata: {' '.join(data.splitlines())}\r\n\r\n"


def text_block(text: str) -> Json:
    return {"type": "text", "text": text, "detail": None}


def sid_of(request: Request) -> str:
    sid = str(request.headers.get("x-session-id", "")).strip()
    if not sid:
        raise Refused(400, "X-Session-ID header is required")
    return sid


async def body_of(request: Request) -> Json:
    """The JSON object of a request. Raises `Refused`."""
    data = b""
    async for piece in request.stream():
        data += piece
        if len(data) > MAX_BODY_BYTES:
            raise Refused(413, f"A request has at most {MAX_BODY_BYTES} bytes.")
    try:
        body = json.loads(data or b"{}")
    except (ValueError, RecursionError):
        raise Refused(422, validation_error("The body is not JSON", "json_invalid")) from None
    if not isinstance(body, dict):
        raise Refused(422, validation_error("The body is not an object"))
    return body


def validation_error(message: str, kind: str = "value_error") -> list[Json]:
    return [{"type": kind, "loc": ["body"], "msg": message, "input": None}]


async def refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return JSONResponse({"detail": error.detail}, status_code=error.status, headers=error.headers)


async def failed(_: Request, error: Exception) -> Response:
    return JSONResponse({"detail": str(error)}, status_code=500)


def environment_name(spec: str) -> str:
    """The name of an environment in paths: lower-case letters, digits, `-` and `_`."""
    return re.sub(r"[^a-z0-9_-]+", "-", spec.split(":", 1)[1].lower()).strip("-") or "environment"
