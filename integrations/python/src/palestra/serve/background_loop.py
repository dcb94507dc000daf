"""An event loop in a thread, for libraries whose functions are coroutines."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class BackgroundLoop:
    """Runs coroutines of a worker. One loop for all episodes, because clients of libraries belong to the loop that made them."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Waits for the result. The deadline of the call ends the process, so there is none here."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()
