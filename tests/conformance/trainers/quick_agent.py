"""palestra.agentlightning.Agent for an environment that disappears: it does not wait the two minutes of a restart."""

from __future__ import annotations

from palestra import client_of
from palestra.agentlightning import Agent


class QuickAgent(Agent):
    async def run(self) -> None:
        client_of().transport._retry_for_s = 1.0
        await super().run()
