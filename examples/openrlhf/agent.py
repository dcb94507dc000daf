"""The agent of `--train.agent_func_path`. A subclass may change `parse`, `max_turns` and `run`."""

from palestra.openrlhf import AgentExecutor

__all__ = ["AgentExecutor"]
