"""A row of a data set as one recorded episode: what the adapters share whose trainer puts its model behind a URL."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from palestra.chat import OpenAIChat
from palestra.episode import Episode
from palestra.places import session_of, task_of
from palestra.play import Chat, play
from palestra.runs import client_of, recorder_of
from palestra.tasks import TaskRef


async def play_row(
    row: Mapping[str, Any] | TaskRef,
    chat: Chat,
    framework: str,
    *,
    run: str | None = None,
    place: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> tuple[Episode, str]:
    """Plays the task of a row and records it. Returns the episode and the id of its rollout.

    Args:
        run: name of the run, by default as `recorder_of` says.
        place: `step`, `group`, `sample`, `samples`, `phase` and `policy_version`, as far as the trainer knows them.
        options: those of `palestra.play`.

    Raises ValueError for a row without a task. A failure of environment or infrastructure is in the episode.
    """
    task = row if isinstance(row, TaskRef) else task_of(row)
    rollout = recorder_of(run, framework).rollout(task, **(place or {}))
    episode = await play(session_of(client_of(), task), chat, record=rollout, **(options or {}))
    return episode, rollout.id


async def play_row_at(
    row: Mapping[str, Any] | TaskRef,
    base_url: str,
    framework: str,
    *,
    model: str = "default",
    api_key: str | None = None,
    sampling: Mapping[str, Any] | None = None,
    run: str | None = None,
    place: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> tuple[Episode, str]:
    """`play_row` with the model at an OpenAI-compatible URL. `sampling`: further fields of its requests, such as `temperature`."""
    chat = OpenAIChat(base_url, model, api_key=api_key, **(sampling or {}))
    try:
        return await play_row(row, chat, framework, run=run, place=place, options=options)
    finally:
        await asyncio.shield(chat.close())


def reward_of(episode: Episode) -> float:
    """The reward to train on: 0.0 if the policy ended the episode without any. Raises the failure that ended the episode, if one did."""
    episode.raise_for_failure()
    return 0.0 if episode.total is None else float(episode.total)
