"""Tools as methods whose signature, hints and docstring say what their JSON Schema says."""

from __future__ import annotations

import inspect
import logging
from typing import Any, Literal, Optional, Union, get_type_hints

import pytest

from palestra import ToolSpec
from palestra.tool_methods import tool_method, type_hint


def method_of(properties: dict[str, Any], required: list[str], description: str = "Looks around.", **schema: Any) -> Any:
    spec = ToolSpec("look", description, {"type": "object", "properties": properties, "required": required, **schema})
    return tool_method(spec, lambda self, name, arguments: (self, name, arguments))


def test_required_arguments_come_first_and_only_given_ones_are_sent() -> None:
    method = method_of({"far": {"type": "boolean"}, "room": {"type": "string", "description": "Where"}}, ["room"])
    look = method.__get__("session")
    signature = inspect.signature(look)
    assert list(signature.parameters) == ["room", "far"]
    assert signature.parameters["room"].default is inspect.Parameter.empty
    assert signature.parameters["far"].default is None
    assert get_type_hints(look) == {"room": str, "far": bool, "return": str}
    assert look(room="Hall") == ("session", "look", {"room": "Hall"})
    assert look.__name__ == "look"
    assert inspect.isfunction(method)


def test_the_docstring_describes_every_argument_on_one_line() -> None:
    method = method_of(
        {"a": {"description": "One\n  of (choices: 3)"}, "b": {"title": "B"}, "c": {}},
        [],
        "Finds it.\nReturns: the thing",
    )
    assert method.__doc__ == "Finds it.\nReturns - the thing\n\nArgs:\n    a: One of (choices: 3).\n    b: B\n    c: c"
    assert method_of({}, [], "").__doc__ == "Calls look."
    assert tool_method(ToolSpec("stop", "Stops.", None), lambda *_: None).__doc__ == "Stops."  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("schema", "hint"),
    [
        ({"type": "integer"}, int),
        ({"type": "number"}, float),
        ({"enum": ["n", "s"]}, Literal["n", "s"]),
        ({"const": 3}, Literal[3]),
        ({"type": "array", "items": {"type": "integer"}}, list[int]),
        ({"type": "array"}, list),
        ({"type": "object", "properties": {}}, dict),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, Optional[str]),
        ({"type": ["integer", "string"]}, Union[int, str]),
        ({"type": "string", "nullable": True}, Optional[str]),
        ({"$ref": "#/$defs/size"}, float),
        ({"$ref": "#/$defs/loop"}, str),
        ({"enum": [{"no": "literal"}]}, str),
        (True, str),
        ({"type": "unheard"}, str),
    ],
)
def test_each_schema_has_a_hint(schema: Any, hint: Any) -> None:
    root = {"$defs": {"size": {"type": "number"}, "loop": {"$ref": "#/$defs/loop"}}}
    assert type_hint(schema, root) == hint


def test_a_name_that_is_no_argument_is_left_out_and_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "palestra"):
        method = method_of({"from": {"type": "string"}, "to-day": {}, "self": {}, "day": {}}, ["day"])
        assert method_of({"from": {"type": "string"}}, ["from"]) is None
    assert list(inspect.signature(method.__get__(object())).parameters) == ["day"]
    assert [record.args[0] for record in caplog.records] == ["from", "to-day", "self", "from"]  # type: ignore[index]
