"""One agent that plays the tools of a session and has no others."""

from __future__ import annotations

import asyncio

import verifiers.v1 as vf
from verifiers.v1.harnesses.null import NullHarness

from palestra_verifiers.sessions import end, episode_traces


class PalestraHarness(NullHarness):
    """The default of this taskset instead of `bash`, which would give the policy a shell."""


class PalestraAgentConfig(vf.AgentConfig):
    # The default of verifiers is a paid sandbox, but this harness runs no code of the model.
    runtime: vf.RuntimeConfig = vf.SubprocessConfig()


class PalestraEnvConfig(vf.SingleAgentEnvConfig):
    agent: PalestraAgentConfig = PalestraAgentConfig()


class PalestraEnv(vf.SingleAgentEnv, vf.Env[PalestraEnvConfig]):
    """Ends the session and records the rollout of each trace, also if the trace failed or was cancelled."""

    async def run(self, task: vf.Task, agents: vf.Agents) -> None:
        traces: list[vf.Trace] = []
        token = episode_traces.set(traces)
        try:
            await super().run(task, agents)
        finally:
            episode_traces.reset(token)
            for trace in traces:
                await asyncio.shield(end(trace))
