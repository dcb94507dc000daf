"""A client of Palestra's sessions, environments and tasks; its sessions also work on other ORS servers."""

from __future__ import annotations

import asyncio
import base64
import concurrent.futures
import contextlib
import json
import uuid
from collections.abc import Mapping
from types import TracebackType
from typing import Any
from urllib.parse import quote, urlencode

from palestra import background
from palestra.failures import Failure, guess_reason, refused_call, session_ended
from palestra.messages import ToolOutput, ToolSpec
from palestra.settings import settings
from palestra.transport import RETRY_FOR_S, Request, Transport

PING_S = 10.0
# Prompt and calls wait for a slow setup.
SETUP_DEADLINE_S = 1800.0


def environment_path(environment: str) -> str:
    """`/v1/environments/{owner}/{name}` of `owner/name`. Raises ValueError for any other form."""
    owner, _, name = environment.partition("/")
    if not owner or not name or "/" in name:
        raise ValueError(f"Invalid environment {environment!r}. Expected owner/name.")
    return f"/v1/environments/{quote(owner, safe='')}/{quote(name, safe='')}"


class Client:
    """Connection to one service. Use one for all sessions of a process; any event loop and thread may use it.

    Args:
        url, api_key: default to the variables in `palestra.settings`.
        retry_for_s: seconds during which a request is repeated after transient errors: connections that break, 429, 502, 503, 504. The
            default covers a restart of the service.
    """

    def __init__(self, url: str | None = None, api_key: str | None = None, *, retry_for_s: float = RETRY_FOR_S) -> None:
        self.settings = settings(url, api_key)
        self.transport = Transport(self.settings, retry_for_s=retry_for_s)

    def session(
        self,
        environment: str,
        *,
        split: str | None = None,
        index: int | None = None,
        task_spec: Any = None,
        variant: str | None = None,
        secrets: Mapping[str, str] | None = None,
        ping_s: float = PING_S,
    ) -> Session:
        """A session to open with `async with`: of a task by `split` and `index` (from 0), or by value (`task_spec`).

        `environment`: `owner/name`, or `owner/name@3` for its version 3. Raises ValueError without exactly one of the two forms of a task.
        """
        by_index = split is not None and index is not None
        if by_index == (task_spec is not None):
            raise ValueError("A session needs either split and index, or task_spec.")
        task = {"split": split, "index": index} if by_index else {"task_spec": task_spec}
        return Session(self.transport, environment, task, variant, dict(secrets or {}), ping_s)

    def attach(self, environment: str, sid: str, *, variant: str | None = None) -> Session:
        """A session that another process opened and keeps alive, for calls. `close` ends it for both."""
        session = Session(self.transport, environment, {}, variant, {}, 0)
        session._sid = sid
        return session

    async def get(self, path: str, **query: Any) -> Any:
        """The JSON of a route of the API. Raises `Failure`."""
        present = {name: value for name, value in query.items() if value is not None}
        return await self.transport.json(Request("GET", f"{path}?{urlencode(present)}" if present else path))

    async def close(self) -> None:
        """Closes the connections of the running event loop."""
        await self.transport.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()


class Session:
    """An episode of an environment. Opened and ended by `async with`; every method raises `Failure`.

    A call that is interrupted by a restart of the service, a cut or a stalled connection is resumed, so that its tool runs once.
    """

    def __init__(
        self,
        transport: Transport,
        environment: str,
        task: dict[str, Any],
        variant: str | None,
        secrets: dict[str, str],
        ping_s: float,
    ) -> None:
        self.environment = environment
        self.task = task
        self.variant = variant
        self._transport = transport
        self._secrets = _secrets_header(secrets)
        self._ping_s = ping_s
        self._prefix = f"/{quote(variant, safe='')}" if variant else ""
        self._sid: str | None = None
        self._queue_position: int | None = None
        self._ended: Failure | None = None
        self._pings: concurrent.futures.Future[None] | None = None

    @property
    def sid(self) -> str | None:
        """Id of the session; None before it is open."""
        return self._sid

    @property
    def queue_position(self) -> int | None:
        """Position, from 1, among the sessions that wait for a slot of the environment or of a quota; None if this one does not wait."""
        return self._queue_position

    async def __aenter__(self) -> Session:
        await self.open()
        return self

    async def __aexit__(self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None) -> None:
        # Also releases the slot of a cancelled episode.
        await asyncio.shield(self.close())

    async def open(self) -> None:
        """Reserves and opens the session; waits for a slot of a full environment."""
        try:
            await self._reserve()
            await self._create()
        except BaseException as error:
            await asyncio.shield(self._end(f"not opened: {error}"))
            raise
        if self._ping_s > 0:
            self._pings = background.pinger.submit(_ping(self._transport, dict(self._headers()), self._ping_s))

    async def _reserve(self) -> None:
        def notice(event: str, data: str) -> None:
            if event == "task_id":
                self._sid = data
            elif event == "queue":
                with contextlib.suppress(ValueError, TypeError, KeyError):
                    self._queue_position = int(json.loads(data)["position"])

        headers = {"x-deployment": self.environment, "x-palestra-queue": "1", **self._secrets}
        text = await self._transport.stream(Request("POST", "/create_session", headers, {}), on_event=notice, is_call=False)
        self._queue_position = None
        if self._sid is None and text:
            self._sid = str(json.loads(text)["sid"])

    async def _create(self) -> None:
        body = {**self.task, **({"env_name": self.variant} if self.variant else {})}
        request = Request("POST", "/create", {**self._headers(), **self._secrets}, body, SETUP_DEADLINE_S)
        may_have_run = False

        async def attempt() -> None:
            nonlocal may_have_run
            try:
                await self._transport.json_once(request)
            except Failure as failure:
                # No other client has the id, so an earlier attempt opened the session and its response was lost.
                if may_have_run and failure.detail == "Session already exists":
                    return
                may_have_run = may_have_run or failure.retryable
                raise

        await self._transport.repeat(attempt)

    async def prompt(self) -> list[dict[str, Any]]:
        """Blocks of the task's prompt. Waits for the setup of the environment."""
        blocks: list[dict[str, Any]] = await self._get("/prompt")
        return blocks

    async def messages(self) -> list[dict[str, Any]]:
        """The prompt as a conversation: `[{"role", "blocks"}]`, also from servers that only have single prompts."""
        try:
            messages: list[dict[str, Any]] = await self._get("/messages")
            return messages
        except Failure as failure:
            if failure.status != 404 or failure.code == "session_not_found":
                raise
        return [{"role": "user", "blocks": await self.prompt()}]

    async def tools(self) -> list[ToolSpec]:
        """The tools of this task, in the order of the server."""
        return (await self.tools_answer())[0]

    async def tools_answer(self) -> tuple[list[ToolSpec], dict[str, Any] | None]:
        """The tools, and the terminal tool (`name`, `arg`), which gets the model's last message instead of a call."""
        answer = await self._get("/task_tools")
        tools = [ToolSpec(tool["name"], tool["description"], tool["input_schema"]) for tool in answer["tools"]]
        return tools, answer.get("terminal_tool")

    async def call(self, tool: str, arguments: Mapping[str, Any] | None = None) -> ToolOutput:
        """Runs a tool once.

        Raises:
            PolicyFailure: the environment refused the call; the session continues.
            EnvironmentFailure: the tool raised; the session is over, because its state is unknown.
            InfrastructureFailure: anything else.
        """
        self._assert_open()
        request = Request("POST", f"{self._prefix}/call", self._headers(), {"name": tool, "input": dict(arguments or {})})
        try:
            result = json.loads(await self._transport.stream(request, idempotency_key=uuid.uuid4().hex))
        except Failure as failure:
            if failure.code == "tool_failed":
                await self._end(failure.detail)
            self._notice_end(failure)
            raise
        if not result["ok"]:
            raise refused_call(result.get("reason") or guess_reason(result["error"]), result["error"])
        output = result["output"]
        return ToolOutput(output["blocks"], output.get("reward"), bool(output.get("finished")), output.get("metadata"))

    async def close(self) -> None:
        """Ends the session. Idempotent; errors are ignored, because the server ends idle sessions."""
        await self._end("closed by its client")

    async def _end(self, why: str) -> None:
        if self._ended is not None or self._sid is None:
            self._ended = self._ended or session_ended(why)
            return
        self._ended = session_ended(why)
        if self._pings is not None:
            self._pings.cancel()
        for path in ("/delete", "/delete_session"):
            try:
                await self._transport.json(Request("POST", path, {"x-session-id": self._sid}, deadline_s=10.0), retry=False)
            except Failure:
                pass

    async def _get(self, path: str) -> Any:
        self._assert_open()
        try:
            return await self._transport.json(Request("GET", self._prefix + path, self._headers(), deadline_s=SETUP_DEADLINE_S))
        except Failure as failure:
            self._notice_end(failure)
            raise

    def _notice_end(self, failure: Failure) -> None:
        """410 is final: later calls fail at once."""
        if failure.status == 410:
            self._ended = failure
            if self._pings is not None:
                self._pings.cancel()

    def _assert_open(self) -> None:
        if self._ended is not None:
            raise self._ended
        if self._sid is None:
            raise RuntimeError("The session is not open: use `async with client.session(...) as session`.")

    def _headers(self) -> dict[str, str]:
        return {"x-session-id": self._sid or "", "x-deployment": self.environment}


async def _ping(transport: Transport, headers: dict[str, str], interval_s: float) -> None:
    """Keeps a session alive until it is cancelled, or the server no longer knows it."""
    while True:
        try:
            await transport.json(Request("POST", "/ping", headers, deadline_s=30.0), retry=False)
        except Failure as failure:
            if failure.status in (401, 404, 410):
                return
        await asyncio.sleep(interval_s)


def _secrets_header(secrets: Mapping[str, str]) -> dict[str, str]:
    if not secrets:
        return {}
    document = json.dumps({name: {"value": value} for name, value in secrets.items()})
    return {"x-secrets": base64.b64encode(document.encode()).decode()}
