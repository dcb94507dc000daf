"""One interface to sessions of every client: of this package, and sync and async ones of `openreward` and `ors-sdk`."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import inspect
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from palestra.client import Session
from palestra.failures import failure_of
from palestra.messages import Message, ToolOutput, ToolSpec, block_of, openai_content, openai_messages


@dataclass(frozen=True)
class Opening:
    """What an episode begins with. `terminal`: name and argument of the tool that gets the model's last message, or None."""

    messages: list[Message]
    tools: list[ToolSpec]
    terminal: tuple[str, str | None] | None


class AnySession:
    """A session of any client. Methods raise `Failure`, whatever the client raises."""

    def __init__(self, session: Any) -> None:
        if not hasattr(session, "call_tool") and not isinstance(session, Session):
            raise TypeError(f"{type(session).__name__} is no session: it has no call_tool")
        self._session = session
        self._owned = False

    @property
    def sid(self) -> str | None:
        return getattr(self._session, "sid", None)

    @property
    def queue_position(self) -> int | None:
        """`Session.queue_position`; None for sessions of other clients."""
        return self._session.queue_position if isinstance(self._session, Session) else None

    async def __aenter__(self) -> AnySession:
        """Opens a session that is not open yet; only such a session is closed at the end."""
        if self.sid is None:
            self._owned = True
            enter = getattr(type(self._session), "__aenter__", None)
            await self._do(functools.partial(enter, self._session) if enter else self._session.__enter__)
        return self

    async def __aexit__(self, *error: object) -> None:
        if not self._owned:
            return
        leave = getattr(type(self._session), "__aexit__", None)
        await asyncio.shield(self._do(functools.partial(leave or type(self._session).__exit__, self._session), None, None, None))

    async def opening(self) -> Opening:
        if isinstance(self._session, Session):
            tools, terminal = await self._session.tools_answer()
            messages = openai_messages(await self._session.messages())
            return Opening(messages, tools, (terminal["name"], terminal.get("arg")) if terminal else None)
        listed = await self._do(self._session.list_tools)
        specs = [ToolSpec(tool.name, tool.description, _plain(tool.input_schema)) for tool in listed]
        return Opening(await self._messages(), specs, await self._terminal())

    async def _messages(self) -> list[Message]:
        if hasattr(self._session, "get_messages"):
            told = await self._do(self._session.get_messages)
            return openai_messages([{"role": one.role, "blocks": [block_of(block) for block in one.blocks]} for one in told])
        blocks = await self._do(self._session.get_prompt)
        return [{"role": "user", "content": openai_content([block_of(block) for block in blocks])}]

    async def _terminal(self) -> tuple[str, str | None] | None:
        if not hasattr(self._session, "terminal_tool"):
            return None
        terminal = await self._do(self._session.terminal_tool)
        return None if terminal is None else (terminal.name, terminal.arg)

    async def call(self, tool: str, arguments: dict[str, Any]) -> ToolOutput:
        if isinstance(self._session, Session):
            return await self._session.call(tool, arguments)
        output = await self._do(self._session.call_tool, tool, arguments)
        return ToolOutput([block_of(block) for block in output.blocks], output.reward, bool(output.finished), _plain(output.metadata))

    async def _do(self, method: Callable[..., Any], *arguments: Any) -> Any:
        """Calls a method of the client: awaits it, or runs it in a thread."""
        try:
            return await call_any(method, *arguments)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            raise failure_of(error) from error


async def call_any(function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls an async function, or a blocking one in a thread."""
    if is_async(function):
        return await function(*arguments)
    result = await _in_thread(functools.partial(function, *arguments))
    return await result if inspect.isawaitable(result) else result


async def _in_thread(work: Callable[[], Any]) -> Any:
    """Runs `work` in a new daemon thread: one for each episode may wait, and a call that never returns must not keep the process
    from ending, as the threads of an executor do.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def settle(result: Any, error: BaseException | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(result)
        else:
            done.set_exception(error)

    def run() -> None:
        result, failed = None, None
        try:
            result = context.run(work)
        except BaseException as error:
            failed = RuntimeError(str(error)) if isinstance(error, StopIteration) else error
        with contextlib.suppress(RuntimeError):  # The loop has ended meanwhile.
            loop.call_soon_threadsafe(settle, result, failed)

    threading.Thread(target=run, name="palestra-call", daemon=True).start()
    return await done


def is_async(function: Callable[..., Any]) -> bool:
    inner = function.func if isinstance(function, functools.partial) else function
    return inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(getattr(type(inner), "__call__", None))


def _plain(value: Any) -> Any:
    return None if value is None else dict(value)
