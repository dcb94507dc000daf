"""Texts of models are read as the service reads them: its tests read the same file (libs/text/src/wire/text-forms.spec.ts)."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from conftest import FIXTURES

from palestra.messages import ToolSpec
from palestra.text import (
    ActionTool,
    action_tool_of,
    find_action,
    parse_tool_call,
    render_observation,
    render_result,
    system_prompt,
    to_action,
)

FORMS = json.loads((FIXTURES / "text-forms.json").read_text())


def named(case: dict[str, Any]) -> str:
    return case["text"][:40].encode("unicode_escape").decode()


@pytest.mark.parametrize("case", FORMS["tool_calls"], ids=named)
def test_tool_calls(case: dict[str, Any]) -> None:
    parsed = parse_tool_call(case["text"])
    expected = case["parsed"]
    if expected is None:
        assert parsed is None
        return
    assert parsed is not None
    told = {"type": parsed.kind, "name": parsed.name, "arguments": parsed.arguments, "error": parsed.error}
    assert {key: told[key] for key in expected} == expected


@pytest.mark.parametrize("case", FORMS["actions"], ids=named)
def test_actions(case: dict[str, Any]) -> None:
    tool = ActionTool("step", FORMS["schemas"][case["schema"]], True)
    if "error" in case:
        with pytest.raises((ValueError, TypeError)) as raised:
            to_action(tool, case["text"])
        assert str(raised.value) == case["error"]
    else:
        assert to_action(tool, case["text"]) == case["action"]


@pytest.mark.parametrize("case", FORMS["found"], ids=named)
def test_the_last_action(case: dict[str, Any]) -> None:
    if "error" in case:
        with pytest.raises(ValueError, match="No action found"):
            find_action(case["text"])
    else:
        assert find_action(case["text"]) == case["action"]


@pytest.mark.parametrize("case", FORMS["observations"], ids=lambda case: str(len(case["text"])))
def test_observations(case: dict[str, Any]) -> None:
    assert render_observation(case["observation"]) == case["text"]


def test_results_of_actions() -> None:
    assert render_result("plain", done=False, reward=None, metadata=None) == "Observation: plain"
    text = render_result('{"a": 1, "done": 5}', done=True, reward=0.5, metadata=None)
    assert text == "done: 5\nreward: 0.5\nmetadata: {}\na: 1\n given this information, try again."


@pytest.mark.parametrize(
    ("tools", "sha256"),
    [
        ([], "15448ecf81f2ecc4f5f0fe733375157d6c7639f0bd8fb74a2007acb4441cef96"),
        ([ToolSpec("submit", "Répondre", None)], "450f7a2287d924a6bde1e86b907c5f4c17dea9a6534b9673b1efca65f5eed023"),
    ],
)
def test_the_system_prompt_is_skyrls(tools: list[ToolSpec], sha256: str) -> None:
    """docs/reference/skyrl.md#task-export"""
    assert hashlib.sha256(system_prompt(tools).encode()).hexdigest() == sha256


def test_which_tool_is_an_action() -> None:
    one = {"type": "object", "properties": {"x": {"type": "string"}}}
    two = {"type": "object", "properties": {"x": {}, "y": {}}}
    assert action_tool_of([ToolSpec("step", "", two)]) == ActionTool("step", two, True)
    assert action_tool_of([ToolSpec("say", "", one)]) == ActionTool("say", one, False)
    assert action_tool_of([ToolSpec("say", "", two)]) is None
    assert action_tool_of([ToolSpec("say", "", one), ToolSpec("look", "", one)]) is None
