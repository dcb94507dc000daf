"""Tools, results and messages: the blocks of a session on one side, OpenAI's chat format on the other."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from palestra.failures import PolicyFailure, refused_call

Message = dict[str, Any]
"""An OpenAI chat message: `role`, `content`, and `tool_calls` or `tool_call_id`."""


@dataclass(frozen=True)
class ToolSpec:
    """A tool of an environment. `input_schema`: JSON Schema of the arguments, None for a tool without arguments."""

    name: str
    description: str
    input_schema: dict[str, Any] | None

    def to_openai(self) -> dict[str, Any]:
        """`{"type": "function", "function": {...}}` of chat completions."""
        parameters = self.input_schema or {"type": "object", "properties": {}}
        return {"type": "function", "function": {"name": self.name, "description": self.description, "parameters": parameters}}


@dataclass(frozen=True)
class ToolOutput:
    """Result of a call. `blocks`: `{"type": "text", "text"}` and `{"type": "image", "data" (base64), "mimeType"}`.

    `reward` is None for a call without one, which is not 0. After `finished` the environment refuses every call.
    """

    blocks: list[dict[str, Any]]
    reward: float | None = None
    finished: bool = False
    metadata: dict[str, Any] | None = None

    @property
    def text(self) -> str:
        """The text blocks, joined without a separator."""
        return text_of(self.blocks)


def text_of(blocks: Sequence[Mapping[str, Any]]) -> str:
    return "".join(block["text"] for block in blocks if block.get("type") == "text")


def block_of(block: Any) -> dict[str, Any]:
    """A block as a dict, from a dict or from a dataclass of another client."""
    if isinstance(block, Mapping):
        return dict(block)
    known = ("type", "text", "data", "mimeType", "signature", "id", "name", "input", "tool_call_id", "is_error")
    plain = {key: getattr(block, key) for key in known if hasattr(block, key)}
    if hasattr(block, "blocks"):
        plain["blocks"] = [block_of(inner) for inner in block.blocks]
    return plain


def openai_content(blocks: Sequence[Mapping[str, Any]]) -> str | list[dict[str, Any]]:
    """Text blocks as one string; with images a list of content parts with data URLs."""
    if not any(block.get("type") == "image" for block in blocks):
        return text_of(blocks)
    return [part for part in map(_part, blocks) if part is not None]


def _part(block: Mapping[str, Any]) -> dict[str, Any] | None:
    if block.get("type") == "text":
        return {"type": "text", "text": block["text"]}
    if block.get("type") == "image":
        return {"type": "image_url", "image_url": {"url": f"data:{block['mimeType']};base64,{block['data']}"}}
    return None


def openai_messages(messages: Sequence[Mapping[str, Any]]) -> list[Message]:
    """The conversation of a task in OpenAI's format. Calls become `tool_calls`, each result a `tool` message, reasoning
    `reasoning_content`.
    """
    converted: list[Message] = []
    for message in messages:
        blocks = message["blocks"]
        converted.extend(_results(blocks))
        rest = [block for block in blocks if block.get("type") in ("text", "image")]
        if message["role"] == "assistant":
            converted.append(_assistant(blocks, rest))
        elif rest or not blocks:
            converted.append({"role": message["role"], "content": openai_content(rest)})
    return converted


def _results(blocks: Sequence[Mapping[str, Any]]) -> list[Message]:
    results: list[Message] = []
    for block in blocks:
        if block.get("type") == "tool_result":
            results.extend(tool_messages(block["tool_call_id"], [dict(inner) for inner in block["blocks"]]))
    return results


def _assistant(blocks: Sequence[Mapping[str, Any]], rest: Sequence[Mapping[str, Any]]) -> Message:
    message: Message = {"role": "assistant", "content": openai_content(rest) or None}
    reasoning = "".join(block["text"] for block in blocks if block.get("type") == "reasoning")
    calls = [tool_call(block["id"], block["name"], json.dumps(block["input"])) for block in blocks if block.get("type") == "tool_call"]
    if reasoning:
        message["reasoning_content"] = reasoning
    if calls:
        message["tool_calls"] = calls
    return message


def tool_call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def tool_messages(call_id: str, blocks: Sequence[Mapping[str, Any]]) -> list[Message]:
    """The result of a call. `tool` messages hold text only, so images follow in a user message."""
    messages: list[Message] = [{"role": "tool", "tool_call_id": call_id, "content": text_of(blocks)}]
    images = [block for block in blocks if block.get("type") == "image"]
    if images:
        messages.append({"role": "user", "content": openai_content(images)})
    return messages


@dataclass
class Reply:
    """One generation of the model.

    Attributes:
        message: the assistant message in OpenAI's format.
        finish_reason: `stop`, `tool_calls`, `length` or what the server says; None if unknown.
        prompt_tokens, completion_tokens: counts, or None if unknown.
        prompt_token_ids, token_ids: ids of the prompt and of the generated tokens, or None.
        logprobs: natural logarithms, one for each of `token_ids`, or None.
    """

    message: Message
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_token_ids: list[int] | None = None
    token_ids: list[int] | None = None
    logprobs: list[float] | None = None

    @property
    def text(self) -> str:
        content = self.message.get("content")
        if isinstance(content, list):
            return "".join(part.get("text", "") for part in content if part.get("type") == "text")
        return content or ""

    @property
    def reasoning(self) -> str | None:
        return self.message.get("reasoning_content") or self.message.get("reasoning") or None

    @property
    def generated(self) -> int | None:
        """Number of generated tokens, or None if unknown."""
        return self.completion_tokens if self.token_ids is None else len(self.token_ids)

    @staticmethod
    def of(value: Any) -> Reply:
        """A `Reply` from what a chat function returned: a Reply, text, an assistant message, or a chat completion (dict or object of the
        `openai` package, also with the token ids of vLLM and SGLang). Raises TypeError for anything else.
        """
        if isinstance(value, Reply):
            return value
        if isinstance(value, str):
            return Reply({"role": "assistant", "content": value})
        if hasattr(value, "model_dump"):
            value = value.model_dump(exclude_none=True)
        if not isinstance(value, Mapping):
            raise TypeError(f"chat must return text, a message or a chat completion, not {type(value).__name__}")
        return _of_completion(value) if "choices" in value else Reply(_clean(value))


def _of_completion(completion: Mapping[str, Any]) -> Reply:
    if not completion["choices"]:
        raise TypeError("the chat completion has no choices")
    choice = completion["choices"][0]
    usage = completion.get("usage") or {}
    content = (choice.get("logprobs") or {}).get("content")
    return Reply(
        message=_clean(choice["message"]),
        finish_reason=choice.get("finish_reason"),
        prompt_tokens=usage.get("prompt_tokens"),
        completion_tokens=usage.get("completion_tokens"),
        prompt_token_ids=completion.get("prompt_token_ids") or choice.get("prompt_token_ids"),
        token_ids=choice.get("token_ids"),
        logprobs=[token["logprob"] for token in content] if content else None,
    )


def _clean(message: Mapping[str, Any]) -> Message:
    kept = {key: value for key, value in message.items() if value is not None or key == "content"}
    return {"role": "assistant", "content": None, **kept}


@dataclass(frozen=True)
class RequestedCall:
    """A call that the model asks for. `problem`: why it cannot be sent, instead of arguments."""

    id: str
    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    problem: PolicyFailure | None = None


def requested_calls(reply: Reply, turn: int) -> list[RequestedCall]:
    """The `tool_calls` of a reply. Arguments that are no JSON object are the policy's failure, not an exception."""
    calls = reply.message.get("tool_calls") or []
    return [_requested(call, f"call_{turn}_{position}") for position, call in enumerate(calls)]


def _requested(call: Any, default_id: str) -> RequestedCall:
    call = call if isinstance(call, Mapping) else {}
    function = call.get("function") if isinstance(call.get("function"), Mapping) else {}
    name, raw = str(function.get("name") or ""), function.get("arguments")
    call_id = str(call.get("id") or default_id)
    try:
        arguments = json.loads(raw) if isinstance(raw, str) and raw.strip() else (raw or {})
        if not isinstance(arguments, dict):
            raise ValueError(f"expected an object, got {type(arguments).__name__}")
        json.dumps(arguments, allow_nan=False)
    except ValueError as error:
        return RequestedCall(call_id, name, problem=refused_call("invalid_arguments", f"The arguments of {name} are invalid: {error}"))
    except RecursionError:
        return RequestedCall(call_id, name, problem=refused_call("invalid_arguments", f"The arguments of {name} are nested too deeply"))
    return RequestedCall(call_id, name, arguments)
