"""Agent Lightning: hooks that give its rollouts step, group and sample. The path of this file is the setting `agentlightning.hooks`
(docs/trainers/agent-lightning.md).
"""

from __future__ import annotations

import uuid
from typing import Any

from palestra.versions import require

require("agentlightning", ">=1.0.2,<2", extra="agent-lightning")

from agentlightning.hooks import RolloutHooks  # noqa: E402


class PalestraHooks(RolloutHooks):  # type: ignore[misc]
    """The trainer enqueues the samples of a task one after another, and a new batch only after rollouts of the one before have ended. So
    consecutive equal requests are a group, and the requests between two ends are a step. Steps count from 0 in each process of the trainer.
    """

    def __init__(self) -> None:
        self._step = -1
        self._batch_ended = True
        self._last: Any = None
        self._group, self._sample = "", 0

    def on_enqueue(self, request: Any) -> Any:
        asked = (request.is_train, request.input)
        if self._batch_ended and request.is_train:
            self._step += 1
        if self._batch_ended or asked != self._last:
            self._group, self._sample = uuid.uuid4().hex, 0
        else:
            self._sample += 1
        self._batch_ended, self._last = False, asked
        place = {"batch_idx": max(self._step, 0), "data_id": self._group, "sample_idx_in_batch": self._sample}
        return request.model_copy(update={"metadata": {**dict(request.metadata or {}), **place}})

    def on_succeeded(self, *_: Any) -> None:
        self._batch_ended = True

    def on_failed(self, *_: Any) -> None:
        self._batch_ended = True
