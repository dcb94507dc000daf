"""rLLM: an agent flow and its evaluator (docs/trainers/rllm.md).

A failure of environment or infrastructure is raised: rLLM repeats the rollout, and at last keeps it as an episode with the termination reason
ERROR and without trajectories, of which it makes no sample (with `workflow.raise_on_error: false`).
"""

from __future__ import annotations

from typing import Any

from palestra.rollouts import play_row_at, reward_of
from palestra.versions import require

require("rllm", ">=0.3,<0.4", extra=None)

import rllm as trainer  # noqa: E402
from rllm.types import AgentConfig, Episode, Task, Trajectory  # noqa: E402

FRAMEWORK = "rllm"
NAME = "palestra"


def agent_flow(run: str | None = None, **options: Any) -> Any:
    """An agent flow for `AgentTrainer(agent_flow=...)`. `run`: name of the run; `options`: those of `palestra.play`."""

    async def play_task(task: Task, config: AgentConfig) -> Episode:
        group, _, sample = config.session_uid.rpartition(":")
        episode, rollout_id = await play_row_at(
            task.metadata,
            config.base_url,
            FRAMEWORK,
            model=config.model,
            run=run,
            place={
                "group": group or None,
                "sample": int(sample) if sample.isdigit() else None,
                "phase": "eval" if config.is_validation else "train",
            },
            options=options,
        )
        reward = reward_of(episode)
        # The gateway recorded the turns, so the trajectory gets its steps from there.
        trajectory = Trajectory(name=NAME, reward=reward, metadata={"palestra_rollout": rollout_id, "stop": episode.stop})
        return Episode(task=task.metadata, trajectories=[trajectory], artifacts={"reward": reward}, metrics={"num_turns": len(episode.turns)})

    return trainer.rollout(name=NAME)(play_task)


rollout = agent_flow()
"""The agent flow with default options."""


@trainer.evaluator  # type: ignore[untyped-decorator]
def evaluator(_task: Any, episode: Episode) -> float:
    """The reward that the environment gave."""
    return float(episode.artifacts["reward"])
