"""HTTP requests with deadlines, repeats and resumable event streams."""

from __future__ import annotations

import asyncio
import json
import random
import time
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx

from palestra._version import __version__
from palestra.canonical import number_of
from palestra.failures import CLASSES, ADVICE, Failure, InfrastructureFailure, classify, http_failure, tool_failed, unreachable
from palestra.settings import Settings

T = TypeVar("T")

USER_AGENT = f"palestra-python/{__version__}"
CONNECT_TIMEOUT_S = 10.0
# A stream without data for this long counts as dead; servers send a heartbeat every 10 s.
STALL_S = 30.0
# A stream that lived this long received a heartbeat, so its failure starts the time for repeats again.
PROGRESS_S = 10.0
# Repeats cover a restart of the service.
RETRY_FOR_S = 120.0
STARTING_FOR_S = 600.0
# Servers of `openreward` and `ors-sdk` redirect paths without a variant to their first environment.
_MAX_REDIRECTS = 3
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.5, 10.0


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: Mapping[str, str] | None = None
    body: Any = None
    deadline_s: float = 60.0
    """Of one attempt."""


class Transport:
    """Connections to one service. Each event loop has its own, so that any thread may use it."""

    def __init__(self, settings: Settings, *, retry_for_s: float = RETRY_FOR_S) -> None:
        self.settings = settings
        self._retry_for_s = retry_for_s
        self._clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = weakref.WeakKeyDictionary()

    async def close(self) -> None:
        """Closes the connections of the running event loop."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    async def json(self, request: Request, *, retry: bool = True) -> Any:
        """The JSON of a 2xx response; None for an empty one. Raises `Failure`.

        `retry`: repeat after transient errors. Only for requests that may be sent twice.
        """
        return await self.repeat(lambda: self.json_once(request)) if retry else await self.json_once(request)

    async def json_once(self, request: Request) -> Any:
        text = await self.text_once(request)
        try:
            return json.loads(text) if text else None
        except ValueError as error:
            raise unreachable(f"{request.path}: the response is not JSON") from error

    async def text_once(self, request: Request) -> str:
        try:
            response = await asyncio.wait_for(self._send(request, request.deadline_s), request.deadline_s)
        except (asyncio.TimeoutError, httpx.RequestError) as error:
            raise unreachable(f"{request.path}: {_describe(error, request.deadline_s)}") from error
        if response.status_code >= 300:
            raise _failure_of_response(response, response.text)
        return response.text

    async def stream(
        self, request: Request, *, idempotency_key: str | None = None, on_event: Callable[[str, str], None] | None = None, is_call: bool = True
    ) -> str:
        """The text that an event stream carries. A stream that is cut or silent is requested again with its task id, so that the call runs
        once; before the id is known, `idempotency_key` names the call.

        Args:
            on_event: called with name and data of each event that is no part of the text.
            is_call: a failure that the stream reports is the recorded outcome of a call, so it is not repeated.

        Raises EnvironmentFailure if the tool raised, and any Failure of HTTP.
        """
        task_id: str | None = None

        def notice(event: str, data: str) -> None:
            nonlocal task_id
            if event == "task_id":
                task_id = data
            if on_event is not None:
                on_event(event, data)

        async def attempt() -> str:
            headers = {**(request.headers or {}), "accept": "text/event-stream", "x-palestra-failure": "1"}
            body = dict(request.body or {})
            if task_id is not None:
                body["task_id"] = task_id
            elif idempotency_key is not None:
                headers["idempotency-key"] = idempotency_key
            return await self._stream_once(Request("POST", request.path, headers, body), notice, is_call)

        return await self.repeat(attempt)

    async def _stream_once(self, request: Request, on_event: Callable[[str, str], None], is_call: bool) -> str:
        pieces: list[str] = []
        try:
            response = await self._send(request, STALL_S, stream=True)
            try:
                if response.status_code >= 300:
                    raise _failure_of_response(response, (await response.aread()).decode(errors="replace"))
                async for event, data in events_of(response.aiter_bytes()):
                    if event in ("chunk", "end"):
                        pieces.append(data)
                    elif event == "failure":
                        raise _failure_of_event(data, is_call)
                    elif event == "error":
                        raise tool_failed(data or "The tool failed without a message.")
                    else:
                        on_event(event, data.strip())
                    if event == "end":
                        return "".join(pieces)
            finally:
                await response.aclose()
        except httpx.RequestError as error:
            raise unreachable(f"{request.path}: {_describe(error, STALL_S)}") from error
        raise unreachable(f"{request.path}: the stream ended without a result")

    async def repeat(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Repeats `attempt` after transient failures, for `retry_for_s` since the last attempt that made progress."""
        first = since = time.monotonic()
        count = 0
        while True:
            began = time.monotonic()
            try:
                return await attempt()
            except Failure as failure:
                now = time.monotonic()
                if failure.code == "unreachable" and now - began > PROGRESS_S:
                    since, count = now, 0
                limit = STARTING_FOR_S - (now - first) if failure.starting else self._retry_for_s - (now - since)
                wait = _wait_before(count, failure)
                if not failure.retryable or wait > limit:
                    raise
                count += 1
                await asyncio.sleep(wait)

    def _client(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=256, keepalive_expiry=30.0)
            try:
                client = self._clients[loop] = httpx.AsyncClient(limits=limits, headers=self._headers())
            except CLIENT_ERRORS as error:
                raise no_client(error) from error
        return client

    def _headers(self) -> dict[str, str]:
        key = self.settings.api_key
        return {"user-agent": USER_AGENT, **({"x-api-key": key} if key else {})}

    async def _send(self, request: Request, read_s: float, *, stream: bool = False) -> httpx.Response:
        """Follows a redirect that keeps method and body, within the server: no other one may get the key and secrets."""
        built = self._build(request, read_s)
        for _ in range(_MAX_REDIRECTS):
            response = await self._client().send(built, stream=stream)
            target = response.next_request
            if response.status_code not in (307, 308) or target is None or _origin_of(target.url) != _origin_of(built.url):
                return response
            await response.aclose()
            built = target
        return await self._client().send(built, stream=stream)

    def _build(self, request: Request, read_s: float) -> httpx.Request:
        origin = self.settings.url if request.path.startswith("/v1/") else self.settings.session_url
        headers = dict(request.headers or {})
        content = None
        if request.body is not None:
            content = json.dumps(request.body, default=number_of).encode()
            headers["content-type"] = "application/json"
        timeout = httpx.Timeout(read_s, connect=CONNECT_TIMEOUT_S, pool=None)
        return self._client().build_request(request.method, origin + request.path, headers=headers, content=content, timeout=timeout)


def _origin_of(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


CLIENT_ERRORS = (httpx.InvalidURL, ImportError, OSError, ValueError)
"""What httpx raises for variables that it cannot use."""


def no_client(error: Exception) -> InfrastructureFailure:
    """A variable of the process names no proxy or certificates."""
    checked = "Check HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY (an IPv6 address without brackets) and SSL_CERT_FILE."
    return InfrastructureFailure("client_error", f"No connection can be made: {error}", checked)


def _wait_before(count: int, failure: Failure) -> float:
    if failure.retry_after_s is not None:
        return min(failure.retry_after_s, _LONGEST_WAIT_S)
    # With jitter, so that many rollouts do not return in the same moment.
    return float(min(_FIRST_WAIT_S * 2.0 ** min(count, 10), _LONGEST_WAIT_S) * random.uniform(0.5, 1.0))


def retry_after_of(headers: Mapping[str, str]) -> float | None:
    """`Retry-After` in seconds; the form with a date is ignored."""
    value = headers.get("retry-after", "")
    return float(value) if value.isdecimal() else None


def _failure_of_response(response: httpx.Response, body: str) -> Failure:
    starting = response.headers.get("x-backend-state") == "starting"
    return http_failure(response.status_code, body, retry_after_s=retry_after_of(response.headers), starting=starting)


def _failure_of_event(data: str, is_call: bool) -> Failure:
    """The event `failure` of a stream (docs/sessions.md)."""
    try:
        told = json.loads(data)
        code, status, detail = told.get("code"), int(told["status"]), str(told["detail"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return tool_failed(data)
    if code is None:
        return tool_failed(detail)
    failure_class, retryable, advice = classify(status, code)
    kinds = {str(name): kind for name, kind in CLASSES.items()}
    kind = kinds.get(str(told.get("failure_class")), CLASSES[failure_class])
    return kind(code, detail, advice or ADVICE["other"], status=status, retryable=retryable and not is_call)


def _describe(error: Exception, deadline_s: float) -> str:
    if isinstance(error, (asyncio.TimeoutError, httpx.TimeoutException)):
        return f"no data for {deadline_s:g} s"
    return str(error) or type(error).__name__


async def events_of(chunks: AsyncIterator[bytes]) -> AsyncIterator[tuple[str, str]]:
    """Events of an SSE stream as (name, data). Lines end with LF or CRLF only: JSON may contain every other line separator."""
    rest, event, data = b"", "", list[str]()
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for raw in lines:
            line = raw.removesuffix(b"\r").decode("utf-8", "replace")
            if not line:
                if event:
                    yield event, "\n".join(data)
                event, data = "", []
                continue
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "event":
                event = value
            elif name == "data":
                data.append(value)
