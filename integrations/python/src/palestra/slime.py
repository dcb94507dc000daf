"""slime: functions for its flags (docs/trainers/slime.md).

The episode is played through slime's own OpenAI adapter, which keeps tokens, log probabilities and masks. After a failure of environment or
infrastructure the sample has the status FAILED and `remove_sample`.
"""

from __future__ import annotations

import functools
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from palestra.chat import OpenAIChat
from palestra.failures import ADVICE, Failure, InfrastructureFailure
from palestra.messages import Message
from palestra.rollouts import play_row, reward_of
from palestra.samples import FAILURE, ROLLOUT, log_functions, normalise_rewards, play_options
from palestra.versions import require

require("slime", ">=0.3.1,<0.4", extra=None)

from slime.agent.adapters import OpenAIAdapter  # noqa: E402
from slime.agent.aiohttp_threaded import run_app_in_thread  # noqa: E402
from slime.rollout import sample_hooks  # noqa: E402
from slime.utils.processing_utils import load_tokenizer  # noqa: E402
from slime.utils.types import Sample  # noqa: E402


FRAMEWORK = "slime"


async def generate(args: Any, sample: Sample, sampling_params: Mapping[str, Any], evaluation: bool = False) -> Sample | list[Sample]:
    """`--custom-generate-function-path palestra.slime.generate`: plays the task of `sample.metadata` (format `slime` of `palestra.rows`).

    PALESTRA_MAX_TURNS and PALESTRA_TIMEOUT_S (of an episode) are options of `palestra.play`, PALESTRA_RUN names the run.

    Returns one sample, or several if the conversation did not stay one sequence of tokens.
    """
    adapter, url = _endpoint(args)
    key = sample.session_id = f"palestra-{uuid.uuid4().hex}"
    adapter.open_session(key, sampling_defaults=dict(sampling_params), max_context_tokens=getattr(args, "rollout_max_context_len", None) or 0)
    chat = OpenAIChat(f"{url}/v1", "slime", api_key=key)

    async def without_reasoning(messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> Any:
        # The adapter compares messages without it, and starts another sequence for a message that has it.
        return await chat([{name: value for name, value in one.items() if name != "reasoning_content"} for one in messages], tools)

    try:
        episode, rollout_id = await play_row(
            sample.metadata or {}, without_reasoning, FRAMEWORK, place=_place(args, sample, evaluation), options=play_options()
        )
        sample.metadata = {**(sample.metadata or {}), ROLLOUT: rollout_id}
        if episode.failure is not None:
            return _failed(sample, episode.failure)
        samples: list[Sample] = await adapter.finish_session(key, base_sample=sample, reward=reward_of(episode), extra_metadata={"stop": episode.stop})
        if not samples:
            return _failed(sample, InfrastructureFailure("chat_failed", f"No tokens were recorded ({episode.stop}).", ADVICE["chat"]))
        if episode.stop in ("max_tokens", "context_length"):
            samples[-1].status = Sample.Status.TRUNCATED
        for one in samples:
            # The adapter copies the place of the sample, but not its metadata.
            one.metadata = {**sample.metadata, **(one.metadata or {})}
        return samples if len(samples) > 1 else samples[0]
    finally:
        await chat.close()
        await adapter.drop_session(key)


async def reward(_args: Any, sample: Sample | list[Sample], **_: Any) -> float | list[float]:
    """`--custom-rm-path palestra.slime.reward`: the reward of the episode, which `generate` has set."""
    if isinstance(sample, list):
        return [float(one.reward or 0.0) for one in sample]
    return float(sample.reward or 0.0)


log_rollouts, log_evaluation = log_functions(FRAMEWORK)
"""`--custom-rollout-log-function-path palestra.slime.log_rollouts`, `--custom-eval-rollout-log-function-path palestra.slime.log_evaluation`."""

post_process_rewards = normalise_rewards
"""`--custom-reward-post-process-path palestra.slime.post_process_rewards`: keeps failed episodes out of the mean of their group."""


@functools.cache
def _service(checkpoint: str, router: str, tool_parser: str | None, reasoning_parser: str | None) -> tuple[OpenAIAdapter, str]:
    tokenizer = load_tokenizer(checkpoint, trust_remote_code=True)
    adapter = OpenAIAdapter(tokenizer=tokenizer, sglang_url=router, tool_parser=tool_parser, reasoning_parser=reasoning_parser)
    running = run_app_in_thread(adapter.app, host="127.0.0.1", runner_kwargs={"handler_cancellation": True})
    return adapter, f"http://127.0.0.1:{running.port}"


def _endpoint(args: Any) -> tuple[OpenAIAdapter, str]:
    router = f"http://{args.sglang_router_ip}:{args.sglang_router_port}"
    parsers = (getattr(args, "sglang_tool_call_parser", None), getattr(args, "sglang_reasoning_parser", None))
    return _service(args.hf_checkpoint, router, *parsers)


def _place(args: Any, sample: Sample, evaluation: bool) -> dict[str, Any]:
    size, group = getattr(args, "n_samples_per_prompt", None), sample.group_index
    return {
        # Weaker than the step of `log_rollouts`, which in asynchronous training is a later one.
        "metadata": {"step": sample_hooks._current_rollout_id},
        "group": group,
        "sample": None if group is None or sample.index is None or not size else sample.index % size,
        "samples": None if group is None else size,
        "phase": "eval" if evaluation else "train",
    }


def _failed(sample: Sample, failure: Failure) -> Sample:
    """Leaves the sample out of the loss. Its reward is a number because slime needs one; `post_process_rewards` does not count it."""
    sample.tokens, sample.response, sample.response_length = [0, 0], "", 1
    sample.loss_mask, sample.rollout_log_probs = [0], [0.0]
    sample.reward, sample.remove_sample, sample.status = 0.0, True, Sample.Status.FAILED
    sample.metadata = {**(sample.metadata or {}), FAILURE: failure.to_dict()}
    return sample
