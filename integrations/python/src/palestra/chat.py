"""A model behind an OpenAI-compatible URL as a chat function: vLLM, SGLang, the inference server of a trainer, or a hosted API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from palestra.failures import ADVICE, Failure, InfrastructureFailure
from palestra.messages import Message
from palestra.settings import Settings
from palestra.transport import Request, Transport

CONTEXT_LENGTH = "context_length_exceeded"
# Errors about a conversation that is too long, of OpenAI, vLLM and Mistral, SGLang, AReaL's client, Anthropic, Google and xAI. The same as in
# apps/cli/src/commands/eval/model.ts. Most of them are in verifiers, too (v1/harnesses/utils/compaction.py).
_CONTEXT_LENGTH_TEXTS = (
    CONTEXT_LENGTH,
    "exceeds the context window",
    "maximum context length",
    "longer than the model's context length",
    "exceeds max_total_tokens",
    "prompt is too long",
    "exceeds the maximum number of tokens allowed",
    "maximum prompt length is",
)


class OpenAIChat:
    """`await chat(messages, tools)` posts to `{base_url}/chat/completions` and returns the completion as a dict.

    Args:
        base_url: with its path, for example `http://localhost:8000/v1`.
        model: name of the model.
        api_key: sent as a bearer token; None sends none.
        timeout_s: seconds for one generation.
        retry_for_s: seconds during which a generation is repeated after 429, 502, 503, 504 and broken connections.
        sampling: further fields of the request, such as `temperature=1.0`, `logprobs=True`, or `return_token_ids=True` for vLLM.

    Raises ValueError for an address without http, and later `InfrastructureFailure` with the code `chat_failed`, or `context_length_exceeded`, which ends an episode without a failure.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        timeout_s: float = 600.0,
        retry_for_s: float = 120.0,
        **sampling: Any,
    ) -> None:
        if not base_url.startswith(("http://", "https://")):
            raise ValueError(f"{base_url!r} is no address of a model. Expected http://host:port/v1.")
        self.model = model
        self.sampling = sampling
        self._timeout_s = timeout_s
        self._headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
        base = base_url.rstrip("/")
        # Only the origin of sessions may have a path in front: the path of a request begins with neither of ours.
        self._transport = Transport(Settings(base, base, None), retry_for_s=retry_for_s)

    async def __call__(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self.model, "messages": list(messages), **self.sampling}
        if tools:
            body["tools"] = list(tools)
        try:
            request = Request("POST", "/chat/completions", self._headers, body, self._timeout_s)
            completion: dict[str, Any] = await self._transport.json(request)
        except Failure as failure:
            code = CONTEXT_LENGTH if _is_context_length(failure.detail) else "chat_failed"
            raise InfrastructureFailure(code, failure.detail, ADVICE["chat"], status=failure.status) from failure
        return completion

    async def close(self) -> None:
        """Closes the connections of the running event loop."""
        await self._transport.close()


def is_context_length(error: BaseException) -> bool:
    """Whether an exception of a chat function says that the conversation no longer fits the model's context."""
    return getattr(error, "code", None) == CONTEXT_LENGTH or _is_context_length(str(error))


def _is_context_length(text: str) -> bool:
    lower = text.lower()
    return any(known in lower for known in _CONTEXT_LENGTH_TEXTS)


def chat_failure(error: BaseException) -> Failure:
    """The failure of a chat function; never the policy's."""
    if isinstance(error, Failure) and error.failure_class != "policy":
        return error
    return InfrastructureFailure("chat_failed", f"{type(error).__name__}: {error}", ADVICE["chat"])


