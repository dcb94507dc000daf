"""Tools of an environment as Python methods, for trainers that read signatures, type hints and docstrings."""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, Optional, Union

from palestra.messages import ToolSpec

logger = logging.getLogger("palestra")

Method = Callable[..., Any]
_TYPES: dict[str, Any] = {"string": str, "integer": int, "number": float, "boolean": bool, "null": type(None)}
# Words that end the part of a docstring before them.
_SECTIONS = re.compile(r"\b(Args|Returns|Raises):")


def tool_method(tool: ToolSpec, run: Callable[[Any, str, dict[str, Any]], Any]) -> Method | None:
    """A method with the name, the signature, the type hints and a Google docstring of a tool; it returns `run(self, name, arguments)`.

    Arguments that the model leaves out are not sent, so that the environment's own defaults count. Returns None, and logs why, for a tool
    with a required argument that cannot be an argument of a Python method.
    """
    schema = tool.input_schema or {}
    properties: Mapping[str, Any] = schema.get("properties") or {}
    required = [name for name in schema.get("required") or [] if name in properties]
    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    annotations: dict[str, Any] = {}
    documented: list[str] = []
    for name in [*required, *(other for other in properties if other not in required)]:
        if name == "self" or not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) or not _can_be_argument(name):
            logger.warning("palestra: the argument %r of %r cannot be an argument of a Python method and is not offered.", name, tool.name)
            if name in required:
                return None
            continue
        default = inspect.Parameter.empty if name in required else None
        hint = annotations[name] = type_hint(properties[name], schema)
        parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint))
        documented.append(f"    {name}: {_line(properties[name], name)}")

    def method(self: Any, **arguments: Any) -> Any:
        return run(self, tool.name, arguments)

    text = _SECTIONS.sub(r"\1 -", tool.description.strip()) or f"Calls {tool.name}."
    method.__name__ = method.__qualname__ = tool.name
    method.__doc__ = text + ("\n\nArgs:\n" + "\n".join(documented) if documented else "")
    method.__annotations__ = {**annotations, "return": str}
    method.__signature__ = inspect.Signature(parameters, return_annotation=str)  # type: ignore[attr-defined]
    return method


def _can_be_argument(name: str) -> bool:
    try:
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY)
    except ValueError:  # A keyword, such as `from`.
        return False
    return True


def type_hint(schema: Any, root: Mapping[str, Any], depth: int = 0) -> Any:
    """The type hint of a JSON Schema, `str` for one that no type hint expresses. `root` has the definitions that `$ref` names."""
    if depth > 8 or not isinstance(schema, Mapping):
        return str
    if isinstance(schema.get("$ref"), str):
        return type_hint(_definition(schema["$ref"], root), root, depth + 1)
    enum = schema.get("enum") or ([schema["const"]] if "const" in schema else None)
    if enum and all(isinstance(value, (str, int, float, bool)) for value in enum):
        return Literal[tuple(enum)]
    choices = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(choices, list) and choices:
        return Union[tuple(type_hint(choice, root, depth + 1) for choice in choices)]
    kind = schema.get("type")
    if isinstance(kind, list) and kind:
        return Union[tuple(type_hint({**schema, "type": one}, root, depth + 1) for one in kind)]
    hint = _hint_of_kind(kind, schema, root, depth)
    return Optional[hint] if schema.get("nullable") is True else hint


def _hint_of_kind(kind: Any, schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Any:
    if kind == "array":
        items = schema.get("items")
        return list[type_hint(items, root, depth + 1)] if isinstance(items, Mapping) and items else list  # type: ignore[misc]
    if kind == "object":
        return dict
    return _TYPES.get(kind, str) if isinstance(kind, str) else str


def _definition(ref: str, root: Mapping[str, Any]) -> Any:
    place: Any = root
    for part in ref.removeprefix("#/").split("/"):
        place = place.get(part) if isinstance(place, Mapping) else None
    return place


def _line(schema: Any, name: str) -> str:
    """The description of an argument on one line, as parsers of docstrings read it; never empty."""
    described = schema.get("description") or schema.get("title") if isinstance(schema, Mapping) else None
    text = " ".join(str(described or name).split())
    # `(choices: …)` at the end would be read as JSON.
    return _SECTIONS.sub(r"\1 -", text) + ("." if text.endswith(")") else "")
