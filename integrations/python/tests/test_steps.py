"""An episode that a trainer drives, over sessions that are scripted here."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from test_play import OfficialSession, Output, Block, ToolCallError, ToolFailed

from palestra import EnvironmentFailure, PolicyFailure, Recorder, Steps, background
from service import Service


def calling(name: str, arguments: str) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "type": "function", "function": function}]}


class Lamp(OfficialSession):
    async def call_tool(self, name: str, arguments: Any) -> Output:
        self.calls.append((name, arguments))
        if name == "break":
            raise ToolFailed("broken")
        if name != "lamp":
            raise ToolCallError("not_found", f"no tool {name}")
        if arguments.get("hold"):
            await self.hold.wait()
        return Output([Block("bright" if arguments["on"] else "dark")], reward=0.5, finished=bool(arguments["on"]))


def wait_until_closed(session: Lamp) -> None:
    deadline = time.monotonic() + 10
    while session.closed == 0 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert session.closed == 1


async def test_each_reply_is_answered_until_the_environment_ends_the_episode() -> None:
    session = Lamp()
    steps = Steps(session)
    opened = await steps.open()
    assert opened.messages == [{"role": "user", "content": "Light the lamp."}]
    assert [tool["function"]["name"] for tool in opened.tools] == ["lamp"]
    first = await steps.reply(calling("lamp", '{"on": false}'))
    assert first.observations == [{"role": "tool", "tool_call_id": "a", "content": "dark"}]
    assert (first.reward, first.done, first.stop, first.failure) == (0.5, False, None, None)
    second = await steps.reply(calling("lamp", '{"on": true}'))
    assert (second.reward, second.done, second.stop) == (0.5, True, "finished")
    assert session.closed == 1
    after = await steps.reply("more")
    assert (after.done, after.stop, after.reward, after.observations) == (True, "finished", None, [])
    assert (await steps.close()).total == 1.0


def test_text_form_and_limit_of_turns_from_threads() -> None:
    steps = Steps(Lamp(), parse="tool_call", max_turns=2)
    assert steps.open_sync().messages[0]["role"] == "system"
    first = steps.reply_sync("nothing to call here <tool_call>{</tool_call>")
    assert first.observations[0]["content"].startswith("<tool_response>\nError parsing tool call")
    assert not first.done
    second = steps.reply_sync('<tool_call>{"name": "lamp", "arguments": {"on": false}}</tool_call>')
    assert (second.done, second.stop, second.reward) == (True, "max_turns", 0.5)


async def test_a_failure_of_the_environment_is_no_reward() -> None:
    session = Lamp()
    steps = Steps(session)
    await steps.reply(calling("lamp", '{"on": false}'))
    broken = await steps.reply(calling("break", "{}"))
    assert isinstance(broken.failure, EnvironmentFailure)
    assert (broken.reward, broken.done, broken.stop) == (None, True, "env_error")
    assert (await steps.close()).total is None
    assert session.closed == 1


async def test_a_session_that_cannot_be_opened_raises() -> None:
    class Closed(Lamp):
        async def __aenter__(self) -> Lamp:
            raise ConnectionRefusedError("nobody there")

    steps = Steps(Closed())
    with pytest.raises(Exception, match="nobody there"):
        await steps.open()
    step = await steps.reply("anyway")
    assert step.done and step.failure is not None and step.reward is None


async def test_calls_of_tools_one_after_another() -> None:
    session = Lamp()
    steps = Steps(session)
    calls = await asyncio.gather(*(steps.call("lamp", {"on": False}) for _ in range(3)))
    assert [call.output.text for call in calls if call.output] == ["dark"] * 3
    refused = await steps.call("nothing")
    assert isinstance(refused.failure, PolicyFailure) and refused.output is None
    assert (await steps.call("lamp", {"on": True})).reward == 0.5
    late = await steps.call("lamp", {"on": True})
    assert late.failure is not None and late.failure.code == "episode_finished"
    assert len(session.calls) == 5


@pytest.mark.parametrize("stop", ["max_tokens", "aborted"])
async def test_close_ends_an_episode_for_a_reason(stop: Any) -> None:
    session = Lamp()
    steps = Steps(session)
    await steps.open()
    episode = await steps.close(stop)
    assert (episode.stop, session.closed) == (stop, 1)
    assert (await steps.close("cancelled")).stop == stop
    assert (await steps.reply("late")).stop == stop


@pytest.mark.parametrize(
    ("error", "stop", "failure_class"),
    [
        (RuntimeError("no server"), "infra_error", "infrastructure"),
        (ValueError("This model's maximum context length is 10 tokens"), "context_length", None),
    ],
)
async def test_a_model_that_fails_is_no_mistake_of_the_policy(error: Exception, stop: str, failure_class: str | None) -> None:
    session = Lamp()
    steps = Steps(session)
    await steps.reply(calling("lamp", '{"on": false}'))
    episode = await steps.fail(error)
    assert (episode.stop, episode.failure and episode.failure.failure_class, session.closed) == (stop, failure_class, 1)
    assert (await steps.fail(error)).stop == stop


async def test_close_interrupts_a_call() -> None:
    session = Lamp()
    steps = Steps(session)
    await steps.open()
    replying = asyncio.ensure_future(steps.reply(calling("lamp", '{"on": true, "hold": true}')))
    while not session.calls:
        await asyncio.sleep(0.01)
    await steps.close()
    assert session.closed == 1
    assert (await replying).done


async def test_close_before_the_opening_opens_nothing() -> None:
    session = Lamp()
    steps = Steps(session)
    await steps.close()
    assert (await steps.reply("late")).done
    assert session.sid is None


async def test_a_reply_of_another_type_is_an_error_and_changes_nothing() -> None:
    steps = Steps(Lamp())
    await steps.open()
    with pytest.raises(TypeError, match="must return text"):
        await steps.reply(7)
    assert (await steps.reply(calling("lamp", '{"on": true}'))).stop == "finished"


def test_a_mistake_of_the_caller_is_raised() -> None:
    session = Lamp()
    steps = Steps(session, parse="morse")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Unknown form"):
        steps.open_sync()
    assert session.closed == 1


def test_a_dropped_episode_is_closed_and_recorded_as_aborted(service: Service, tmp_path: Path) -> None:
    with Recorder("run", url=service.url, api_key="or_key", spool_dir=tmp_path) as recorder:
        session = Lamp()
        steps = Steps(session, record=recorder.rollout(environment="a/b", split="train", index=0))
        steps.reply_sync(calling("lamp", '{"on": false}'))
        before = recorder.report().recorded
        del steps
        gc.collect()
        wait_until_closed(session)
        # What closed it records the end afterwards.
        deadline = time.monotonic() + 10
        while recorder.report().recorded == before and time.monotonic() < deadline:
            time.sleep(0.01)
        assert recorder.flush(10).complete
    assert any(event.get("rollout_info", {}).get("stop_reason") == "aborted" for event in service.stored.values())


def test_the_end_of_the_process_closes_what_is_open() -> None:
    program = (
        "from test_steps import Lamp\nfrom palestra import Steps\n"
        "class Told(Lamp):\n"
        "    async def __aexit__(self, *error):\n"
        "        print('closed', flush=True)\n"
        "steps = Steps(Told())\nsteps.open_sync()\nraise SystemExit(3)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (3, "closed\n"), ended.stderr


def test_an_episode_is_dropped_by_the_thread_that_uses_the_worker() -> None:
    """The garbage collector runs anywhere, also while the lock of the worker's loop is held."""
    done: list[int] = []

    def use() -> None:
        with background.worker._lock:
            done.append(background.worker.submit(asyncio.sleep(0, 1)).result(10))

    thread = threading.Thread(target=use, daemon=True)
    thread.start()
    thread.join(10)
    assert done == [1]
