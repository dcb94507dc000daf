"""What tests of adapters share whose trainer is not installed: its recorded shapes, and sessions in place of those of the service."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from test_play import Block, OfficialSession, Output, ToolFailed

from palestra import versions


class Lamp(OfficialSession):
    """`lamp` gives .5 and ends with `on: true`; `break` raises."""

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> Output:
        if name == "break":
            raise ToolFailed("broken")
        return Output([Block("dark")], reward=0.5, finished=bool(arguments["on"]))


@contextmanager
def adapter_of(
    monkeypatch: pytest.MonkeyPatch, name: str, version: str, shapes: Mapping[str, Mapping[str, Any]], record: Callable[..., Any]
) -> Iterator[Any]:
    """The module `palestra.<name>` over modules of the trainer with these members. It has two more members: `sessions`, each a `Lamp`, and
    `rollouts`, the arguments of each recorded rollout. `record(task, **arguments)` returns the rollout.
    """
    for shape, members in shapes.items():
        module = ModuleType(shape)
        module.__dict__.update(members)
        monkeypatch.setitem(sys.modules, shape, module)
    monkeypatch.setattr(versions, "require", lambda *_, **__: version)
    monkeypatch.delitem(sys.modules, f"palestra.{name}", raising=False)
    adapter: Any = importlib.import_module(f"palestra.{name}")
    adapter.sessions, adapter.rollouts = [], []

    def session_of(_client: Any, _task: Any) -> Lamp:
        adapter.sessions.append(Lamp())
        session: Lamp = adapter.sessions[-1]
        return session

    def rollout(task: Any, **facts: Any) -> Any:
        adapter.rollouts.append(facts)
        return record(task, **facts)

    monkeypatch.setattr(adapter, "session_of", session_of)
    monkeypatch.setattr(adapter, "client_of", lambda: None)
    monkeypatch.setattr(adapter, "recorder_of", lambda _run, _framework, **_info: SimpleNamespace(rollout=rollout))
    yield adapter
    sys.modules.pop(f"palestra.{name}", None)
