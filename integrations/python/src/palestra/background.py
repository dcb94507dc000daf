"""Event loops in separate threads, for synchronous callers and for pings. A forked child starts new ones."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import socket
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

# For the cleanup of what Ctrl-C cancelled, such as the end of a session. Another Ctrl-C does not wait for it.
CLEANUP_S = 5.0


class LoopThread:
    """A daemon thread with an event loop, started by its first use in each process."""

    def __init__(self, name: str) -> None:
        self._name = name
        # The garbage collector may end an episode in the thread that holds it.
        self._lock = threading.RLock()
        self._pid = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        # Threads do not survive a fork, and another thread may have held the lock.
        self._lock = threading.RLock()
        self._loop = None

    def loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._pid != os.getpid():
                self._loop = _resolving(asyncio.new_event_loop())
                self._pid = os.getpid()
                threading.Thread(target=self._loop.run_forever, name=self._name, daemon=True).start()
            return self._loop

    def submit(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Starts the coroutine in this loop, from any thread."""
        return asyncio.run_coroutine_threadsafe(work, self.loop())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Waits for the coroutine. An interrupt of the caller (Ctrl-C) cancels it, and waits a moment for its cleanup."""
        ended = threading.Event()

        async def watched() -> T:
            try:
                return await work
            finally:
                ended.set()

        future = self.submit(watched())
        try:
            return future.result()
        except BaseException:
            if future.cancel():
                ended.wait(CLEANUP_S)
            raise


def _resolving(loop: asyncio.AbstractEventLoop) -> asyncio.AbstractEventLoop:
    """A loop that also resolves names while the process ends: executors take no work then, but sessions are still closed."""
    if not isinstance(loop, asyncio.BaseEventLoop):
        return loop
    resolve = loop.getaddrinfo

    async def getaddrinfo(host: Any, port: Any, *, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0) -> Any:
        try:
            return await resolve(host, port, family=family, type=type, proto=proto, flags=flags)
        except RuntimeError:
            return socket.getaddrinfo(host, port, family, type, proto, flags)

    loop.getaddrinfo = getaddrinfo  # type: ignore[method-assign]
    return loop


worker = LoopThread("palestra-worker")
# A separate loop: work that blocks the other one must not let sessions expire.
pinger = LoopThread("palestra-pings")
