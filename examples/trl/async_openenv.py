"""AsyncGRPO with OpenEnv's harness. The weights are served by vLLM; docs/trainers/trl.md says how the worker is started."""

import functools

from openenv.core.harness import MCPHarnessAdapter
from trl.experimental.async_grpo.openenv_harness import HarnessRolloutWorker

from palestra.openenv import PalestraSessionFactory


def worker(**options):  # type: ignore[no-untyped-def]
    """For `AsyncGRPOTrainer(rollout_worker=worker(...))`; `options`: model_name, dataset, processing_class, … of TRL's AsyncRolloutWorker."""
    return HarnessRolloutWorker(
        harness_session_factory=functools.partial(PalestraSessionFactory, "palestra/whodunit", samples=8),
        harness_adapter=MCPHarnessAdapter(),
        num_generations=8,
        reward_funcs=[],
        **options,
    )
