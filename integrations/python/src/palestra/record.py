"""Rollouts of a training run, recorded without waiting for the service."""

from __future__ import annotations

import json
import os
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from numbers import Integral
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from palestra import spool
from palestra.episode import Call, Episode
from palestra.failures import Failure
from palestra.messages import Message, Reply, RequestedCall
from palestra.settings import settings
from palestra.sidecar import TokenRecord, TokenSidecar
from palestra.tasks import TaskRef
from palestra.upload import MAX_SPOOL_BYTES, Uploader, UploadReport, default_directory

MessageType = Literal["reasoning", "tool_call", "tool_result", "user_message", "assistant_message", "system_message"]
_TYPES: dict[str, MessageType] = {
    "system": "system_message",
    "developer": "system_message",
    "user": "user_message",
    "assistant": "assistant_message",
}


class Recorder:
    """Records the rollouts of one run. Thread-safe, for many rollouts at once; a forked child records to other files.

    Every event is in a file of the spool before a method returns, and threads upload it. No method but `flush` and `close` waits for the
    network. Events that the service does not have when the process ends, by whatever signal, are uploaded by the next process with the
    same spool and key, or by `palestra-upload`. Events have ids, so that a repeat stores nothing twice.

    Args:
        run: name of the run; its first rollout creates it.
        url, api_key: default to the variables in `palestra.settings`.
        run_info: settings of the run, such as `model_name`, `framework`, `lr` (docs/reference/ors.md#rollout-events).
        spool_dir: defaults to PALESTRA_SPOOL_DIR, then a directory of the user's state. A local disk: a method waits for its write.
        sidecar_dir: where token ids and log probabilities go; None keeps none. The service does not store them.
        max_spool_bytes: of events that wait on disk. Beyond it events are refused, which the report counts.

    Raises OSError if the spool cannot be used.
    """

    def __init__(
        self,
        run: str,
        *,
        url: str | None = None,
        api_key: str | None = None,
        run_info: Mapping[str, Any] | None = None,
        spool_dir: str | Path | None = None,
        sidecar_dir: str | Path | None = None,
        max_spool_bytes: int = MAX_SPOOL_BYTES,
    ) -> None:
        target = settings(url, api_key)
        self.run = run
        self.run_info = dict(run_info or {})
        self._sidecar = None if sidecar_dir is None else TokenSidecar(sidecar_dir)
        directory = Path(spool_dir) if spool_dir is not None else default_directory(target)
        spool.prepare_directory(directory)
        self._uploader = Uploader(target, directory, max_spool_bytes=max_spool_bytes)

    def rollout(
        self,
        task: TaskRef | None = None,
        *,
        environment: str | None = None,
        split: str | None = None,
        index: int | None = None,
        variant: str | None = None,
        task_spec: Mapping[str, Any] | None = None,
        name: str | None = None,
        step: int | None = None,
        group: str | int | None = None,
        sample: int | None = None,
        samples: int | None = None,
        phase: Literal["train", "eval"] | None = None,
        policy_version: int | str | None = None,
        session_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Rollout:
        """A rollout of a task, or of `environment` (`owner/name`), `split` and `index`. Nothing is recorded before its first message.

        Args:
            step: of the training, from 0.
            group: id of the group of rollouts that are compared with each other; sample: number in it, from 0; samples: its size.
            policy_version: step (int) or name (str) of the weights that generated it.
            session_id: joins the rollout with the ledger of the session; `play` fills it in.

        Raises ValueError for a step, sample or samples that is no whole number, which the service would not know.
        """
        if task is not None:
            environment, split, index, variant = task.environment, task.split, task.index, task.variant
        step = _whole("step", step)
        numbers: dict[str, Any] = {
            "group_id": None if group is None else str(group),
            "sample_idx": _whole("sample", sample),
            "n_samples": _whole("samples", samples),
            "phase": phase,
            "policy_step": policy_version if isinstance(policy_version, Integral) else None,
            "policy_version": policy_version if isinstance(policy_version, str) else None,
            "session_id": session_id,
            **({"task_key": task.key or None, "env_version": task.version} if task is not None else {}),
        }
        start = {
            "runName": self.run,
            "rolloutName": name,
            "environment": environment,
            "variant": variant,
            "split": split,
            "step": step,
            "task_spec": None if task_spec is None else dict(task_spec),
            "run_info": {**self.run_info, **({"run_type": phase} if phase else {})} or None,
            "rollout_info": _present({"task_index": index, "current_step": step}) or None,
            "metadata": {**_present(numbers), **(metadata or {})},
        }
        return Rollout(self._uploader, self._sidecar, start, index)

    def update(self, rollout_id: str, **rollout_info: Any) -> None:
        """Adds to a rollout of this run, also after its end, what the trainer learns later: `current_step`, `group_id`, `sample_idx`,
        `policy_step` and other values of its `rollout_info`. None adds nothing.
        """
        self._uploader.add(_update(rollout_id, rollout_info))

    def report(self) -> UploadReport:
        """Where the events are now. Does not wait."""
        return self._uploader.report()

    def flush(self, timeout_s: float = 1.0) -> UploadReport:
        """Waits at most `timeout_s` seconds until the service has the events recorded so far. The report says what is still on disk."""
        return self._uploader.flush(timeout_s)

    def close(self, timeout_s: float = 10.0) -> UploadReport:
        """Flushes for at most `timeout_s` seconds and leaves the rest on disk for the next process. Idempotent."""
        return self._uploader.close(timeout_s)

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None) -> None:
        self.close()


class Rollout:
    """One rollout that is being recorded. Made by `Recorder.rollout`; thread-safe.

    `id`: of the rollout, in `/rollout/{id}` of the dashboard.
    """

    def __init__(self, uploader: Uploader, sidecar: TokenSidecar | None, start: dict[str, Any], index: int | None) -> None:
        self.id = str(uuid.uuid4())
        self._uploader = uploader
        self._sidecar = sidecar
        self._start = start
        self._task_index = index
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._next_index = 0
        self._started = False

    def log(
        self,
        type: MessageType,
        content: str | None = None,
        *,
        name: str | None = None,
        call_id: str | None = None,
        reward: float | None = None,
        finished: bool = False,
        metadata: Mapping[str, Any] | None = None,
        tokens: Reply | None = None,
    ) -> str:
        """Records one message and returns its id.

        Args:
            type: what it is. `tool_call` has `name` and, as `content`, its arguments as JSON text; `call_id` joins it with its result.
            reward: that the environment gave with a `tool_result`; None for none.
            finished: the environment ended the episode with it.
            tokens: a reply whose `token_ids` go to the sidecar.
        """
        event_id = str(uuid.uuid4())
        message = {
            "eventType": "message",
            "eventId": event_id,
            "rolloutEventId": self.id,
            "timestamp": _now_ms(),
            "type": type,
            "content": content,
            "name": name,
            "callId": call_id,
            "reward": reward,
            "isFinished": finished,
            "metadata": dict(metadata or {}),
        }
        with self._locked():
            self._begin_locked()
            index = self._next_index
            self._next_index += 1
            self._uploader.add(_present({**message, "index": index}))
        if tokens is not None and tokens.token_ids is not None and self._sidecar is not None:
            record = TokenRecord(self.id, event_id, index, tokens.prompt_token_ids, tokens.token_ids, tokens.logprobs)
            self._sidecar.write(record)
        return event_id

    def message(self, message: Message, *, reward: float | None = None, finished: bool = False, tokens: Reply | None = None) -> None:
        """Records a message of OpenAI's format: reasoning, text and calls of an assistant message each as one message."""
        if message["role"] == "tool":
            self.log("tool_result", _text(message), call_id=message.get("tool_call_id"), reward=reward, finished=finished)
            return
        if message["role"] != "assistant":
            self.log(_TYPES[message["role"]], _text(message), reward=reward, finished=finished)
            return
        reply = Reply(message)
        calls = [(str(call.get("id") or ""), call.get("function") or {}) for call in message.get("tool_calls") or []]
        texts = [(call_id, str(function.get("name")), _arguments(function.get("arguments"))) for call_id, function in calls]
        self._assistant(reply, texts, reward, finished, tokens)

    def _assistant(
        self, reply: Reply, calls: Sequence[tuple[str, str, str]], reward: float | None, finished: bool, tokens: Reply | None
    ) -> None:
        if reply.reasoning:
            self.log("reasoning", reply.reasoning)
        if reply.text or not calls:
            self.log("assistant_message", reply.text, reward=reward, finished=finished, tokens=tokens)
            reward, finished, tokens = None, False, None
        for number, (call_id, name, arguments) in enumerate(calls, 1):
            last = number == len(calls)
            given: dict[str, Any] = {"reward": reward, "finished": finished} if last else {}
            self.log("tool_call", arguments, name=name, call_id=call_id, tokens=tokens, **given)
            tokens = None

    def update(self, **rollout_info: Any) -> None:
        """Merges values into the rollout's `rollout_info`, such as `temperature`, `harness`, `stop_reason`."""
        with self._locked():
            self._begin_locked()
            self._uploader.add(_update(self.id, rollout_info))

    def finish(self, stop: str, *, total: float | None = None, failure: Failure | None = None, **rollout_info: Any) -> None:
        """Records the end: the stop reason, the total reward and the failure, which makes the rollout unscored."""
        failed = {} if failure is None else {"failure_class": failure.failure_class, "failure_kind": failure.code, "error": failure.detail}
        self.update(task_index=self._task_index, stop_reason=stop, reward_total=total, **failed, **rollout_info)

    # What `play` calls.

    def begin(self, session_id: str | None, prompt: Sequence[Message]) -> None:
        with self._locked():
            if session_id is not None and not self._started:
                self._start["metadata"].setdefault("session_id", session_id)
        for message in prompt:
            self.message(message)

    def reply(self, reply: Reply, calls: Sequence[RequestedCall]) -> None:
        texts = [(call.id, call.name, json.dumps(call.arguments)) for call in calls]
        self._assistant(reply, texts, None, False, reply)

    def observations(self, messages: Sequence[Message]) -> None:
        for message in messages:
            self.message(message)

    def result(self, call: Call, content: str, step_reward: float | None) -> None:
        failure = call.failure
        told = {} if failure is None else {"error": failure.code, "failure_class": failure.failure_class}
        steps = {} if step_reward is None else {"step_reward": step_reward}
        output = call.output
        own = {} if output is None else output.metadata or {}
        finished = output is not None and output.finished
        self.log("tool_result", content, call_id=call.id, reward=call.reward, finished=finished, metadata={**own, **told, **steps})

    def end(self, episode: Episode) -> None:
        tokens = _present({"output": episode.completion_tokens})
        self.finish(
            episode.stop,
            total=episode.total,
            failure=episode.failure,
            num_turns=len(episode.turns),
            duration_ms=round(episode.duration_s * 1000),
            tokens=tokens or None,
        )

    def _begin_locked(self) -> None:
        if not self._started:
            self._started = True
            self._uploader.add(_present({"eventType": "rollout", "eventId": self.id, "timestamp": _now_ms(), **self._start}))

    def _locked(self) -> threading.Lock:
        # Another thread may have held the lock when the process was forked.
        if self._pid != os.getpid():
            self._pid, self._lock = os.getpid(), threading.Lock()
        return self._lock


def _update(rollout_id: str, rollout_info: Mapping[str, Any]) -> dict[str, Any]:
    return {"eventType": "rollout_update", "eventId": rollout_id, "timestamp": _now_ms(), "rollout_info": _present(rollout_info)}


def _whole(name: str, value: Any) -> int | None:
    """A whole number of Python, numpy or torch."""
    number = value.item() if getattr(value, "ndim", None) == 0 else value
    if number is None:
        return None
    if isinstance(number, bool) or not (isinstance(number, Integral) or (isinstance(number, float) and number.is_integer())):
        raise ValueError(f"{name} must be a whole number, not {value!r}.")
    return int(number)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _present(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _text(message: Message) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else Reply(message).text


def _arguments(arguments: Any) -> str:
    """JSON text. The service refuses a blank text."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    return text if text.strip() else "{}"
