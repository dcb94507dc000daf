"""Tool calls and actions in the text of a model, read and answered as the text sessions of the service do (docs/text.md).

Ports libs/text. tests/fixtures/text-forms.json has texts with their readings, which the tests of both read.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from palestra.messages import ToolSpec

_BEFORE_TOOLS = """You are an agent that takes actions in a stateful environment to achieve a goal.

# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
"""
_AFTER_TOOLS = """
</tools>

For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call>"""

NOT_JSON = "Out of range float values are not JSON compliant"


def system_prompt(tools: Sequence[ToolSpec]) -> str:
    """SkyRL's system prompt for text calls, byte for byte."""
    lines = [
        json.dumps({"name": tool.name, "arguments_schema": tool.input_schema, "description": tool.description}) for tool in tools
    ]
    return _BEFORE_TOOLS + "\n".join(lines) + _AFTER_TOOLS


def tool_response(text: str) -> str:
    """The observation of a call."""
    return f"<tool_response>\n{text}\n</tool_response>"


@dataclass(frozen=True)
class TextCall:
    """The first `<tool_call>` of a text. `kind`: `call`; `malformed`, where `error` is the text for the model; `impossible`, a call that no
    server accepts.
    """

    kind: str
    name: Any = None
    arguments: dict[str, Any] = field(default_factory=dict)
    error: str = ""


def parse_tool_call(text: str) -> TextCall | None:
    """The first `<tool_call>`, whose end tag may be missing; None without one. Error texts are those of Python's `json`."""
    start = text.find("<tool_call>")
    if start == -1:
        return None
    begin = start + len("<tool_call>")
    end = text.find("</tool_call>", start)
    try:
        data = json.loads((text[begin:] if end == -1 else text[begin:end]).strip())
    except (ValueError, RecursionError) as error:
        return TextCall("malformed", error=str(error))
    if not isinstance(data, dict):
        return TextCall("malformed", error=f"'{type(data).__name__}' object has no attribute 'get'")
    name, arguments = data.get("name"), data.get("arguments", {})
    if not name:
        return TextCall("malformed", error="missing 'name' field")
    if not isinstance(arguments, dict):
        return TextCall("malformed", error=f"arguments is not a dict: {type(arguments).__name__}")
    if not isinstance(name, str):
        return TextCall("impossible", name, arguments, f"the name of a tool must be a string, not {name!r}")
    if _holds_non_finite(arguments):
        return TextCall("impossible", name, {}, NOT_JSON)
    return TextCall("call", name, arguments)


def _holds_non_finite(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_non_finite, value.values()))
    if isinstance(value, list):
        return any(map(_holds_non_finite, value))
    return isinstance(value, float) and not math.isfinite(value)


@dataclass(frozen=True)
class ActionTool:
    """The tool of a model's actions. `observes`: its result is the JSON text of an observation."""

    name: str
    schema: dict[str, Any]
    observes: bool


def action_tool_of(tools: Sequence[ToolSpec]) -> ActionTool | None:
    """The tool of an action environment, or the only tool if it takes one argument; None otherwise."""
    if len(tools) != 1:
        return None
    tool = tools[0]
    schema, observes = tool.input_schema or {}, tool.name == "step"
    return ActionTool(tool.name, schema, observes) if observes or _field_of(schema) is not None else None


def find_action(text: str) -> str:
    """The content of the last `<action>...</action>` on one line. Raises ValueError with the text that the model sees."""
    found = re.findall(r"<action>([^\n]*?)</action>", text)
    if not found or not found[-1]:
        raise ValueError(f"No action found in action string: {found[-1] if found else None}")
    return str(found[-1])


def to_action(tool: ActionTool, text: str) -> dict[str, Any]:
    """The arguments that a text means. Raises ValueError or TypeError with the text that the model sees."""
    name = _field_of(tool.schema)
    value = _object_of(text)
    if value is not None and (name is None or _is_action_of(tool.schema, name, value)):
        return value
    if name is None:
        raise ValueError(f"Action must be a JSON object, got: {text}")
    return {name: _field_value(tool.schema, name, text)}


def _object_of(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def _properties_of(schema: Mapping[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def _field_of(schema: Mapping[str, Any]) -> str | None:
    """The only required field, or the only field; None if there are several."""
    required = schema.get("required")
    names = required if isinstance(required, list) and required else list(_properties_of(schema))
    return names[0] if len(names) == 1 else None


def _is_action_of(schema: Mapping[str, Any], name: str, value: Mapping[str, Any]) -> bool:
    """Whether an object is the action itself, and not the value of its text field."""
    return name in value and all(key in _properties_of(schema) for key in value)


def _type_of(schema: Any) -> str:
    if not isinstance(schema, dict):
        return "string"
    kind, any_of = schema.get("type"), schema.get("anyOf")
    kinds = kind if isinstance(kind, list) else [_type_of(one) for one in any_of] if isinstance(any_of, list) else [kind]
    first = next((one for one in kinds if one != "null"), None)
    return first if isinstance(first, str) else "string"


def _field_value(schema: Mapping[str, Any], name: str, text: str) -> Any:
    """The text converted to the type of the field (docs/reference/skyrl.md#action-conversion)."""
    titled = re.fullmatch(r"(\w+)Action", str(schema.get("title") or ""), re.ASCII)
    environment = titled[1] if titled else None
    kind = _type_of(_properties_of(schema).get(name))
    if kind == "integer":
        if environment == "Atari" and not re.fullmatch(r"[0-9]+", text):
            raise ValueError(f"Atari action must be numeric, got: {text}")
        return int(text)
    if kind == "number":
        value = float(text)
        if not math.isfinite(value):
            raise ValueError(NOT_JSON)
        return value
    if kind == "boolean":
        word = text.strip().lower()
        if word not in ("true", "1", "false", "0"):
            raise ValueError(f"Action must be true or false, got: {text}")
        return word in ("true", "1")
    if kind == "array":
        return _list_value(environment, text)
    if kind == "object":
        raise ValueError(f"Action must be a JSON object, got: {text}")
    return text


def _list_value(environment: str | None, text: str) -> list[Any]:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
        kind = f"{environment} " if environment else ""
        # The address of the node in memory means nothing to a model.
        reason = "malformed node or string" if "malformed node" in str(error) else str(error)
        raise ValueError(f"Invalid {kind}action format '{text}', needs to be a list of floats: {reason}") from error
    if isinstance(value, (str, bytes, dict, set)):
        kind = f"{environment} " if environment else ""
        raise ValueError(f"Invalid {kind}action format '{text}', needs to be a list of floats: malformed node or string")
    return [_plain(item) for item in value]


def _plain(value: Any) -> Any:
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


SHOWN_ITEMS = 20


def render_observation(observation: Mapping[str, Any]) -> str:
    """One line per field, long lists cut, as SkyRL's OpenEnv adapter writes it."""
    lines = []
    for key, value in observation.items():
        if isinstance(value, list):
            more = " ..." if len(value) > SHOWN_ITEMS else ""
            lines.append(f"{key}: {value[:SHOWN_ITEMS]!r}{more} (len={len(value)})")
        else:
            lines.append(f"{key}: {value}")
    return "\n".join(lines) + "\n given this information, try again."


def render_result(text: str, *, done: bool, reward: float | None, metadata: Mapping[str, Any] | None) -> str:
    """The observation of an action: `done`, `reward` and `metadata` first, then the fields of the result."""
    fields = _object_of(text)
    if fields is None:
        return f"Observation: {text}"
    return render_observation({"done": done, "reward": reward, "metadata": dict(metadata or {}), **fields})
