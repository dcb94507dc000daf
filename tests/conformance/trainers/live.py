"""Sessions of the organisation that are still open, for programs that must leave none."""

from __future__ import annotations

import asyncio
from typing import Any

from palestra import client_of


async def live_sessions(tries: int = 100) -> int:
    """How many there are, when those that are being closed are."""
    sessions: list[Any] = []
    for _ in range(tries):
        sessions = (await client_of().get("/v1/sessions", state="live"))["sessions"]
        if not sessions:
            break
        await asyncio.sleep(0.05)
    return len(sessions)
