"""The class of a failure: policy, environment or infrastructure.

Only a failure of the policy may count against the policy: a trainer leaves every other episode out of the loss. The classes of HTTP errors
are those of the TypeScript client (libs/client/src/failures.ts); tests of both read tests/fixtures/client-failures.json.
"""

from __future__ import annotations

import json
import re
from typing import Any, ClassVar, Literal

FailureClass = Literal["policy", "environment", "infrastructure"]

ADVICE = {
    "unavailable": "Check that the service runs and that its address is right. Requests that the client can repeat were repeated.",
    "limit": "Close sessions that are no longer needed or ask the operator for a higher limit, then send the request again.",
    "key": "Create another API key under /keys of the service and pass it to the client.",
    "permission": "Use an API key with the scope and the role that this request needs.",
    "rejected": "Read rejected.jsonl of the spool and move it elsewhere. The events that the service rejected wait in the spool until then.",
    "storage": "Delete stored files, or ask the operator for a higher quota.",
    "environment_name": "The environment was renamed, deleted or made private, or never existed. Choose one that the service lists.",
    "session": "Open another session for the task, and leave this episode out of the figures.",
    "environment": "The environment failed, not the policy. Leave this episode out of the figures and tell the owner of the environment.",
    "request": "Correct the request: the same request fails again.",
    "service": "The service failed. Tell its operator, with the id of the error if it has one.",
    "other": "Look for the code in docs/errors.md.",
    "policy": "Give the message to the policy, which may try again.",
    "deadline": "Allow more time, or leave this episode out of the figures.",
    "chat": "Check the program that generates for the policy, and leave this episode out of the figures.",
}


class Failure(Exception):
    """Base of the three classes. Pickles as itself, so that it passes through Ray and multiprocessing.

    Attributes:
        code: code of docs/errors.md, reason of a refused call, or one of `unreachable`, `tool_failed`, `session_ended`, `http_<status>`,
            `episode_timeout`, `call_timeout`, `chat_timeout`, `chat_failed`, `spool_full`, `rejected_not_kept`.
        detail: what happened.
        advice: what to do about it.
        status: HTTP status, or None.
        retryable: whether the same request may succeed later.
        retry_after_s: seconds that the server asks to wait, or None.
        starting: the environment is starting, and nothing ran (`X-Backend-State`).
    """

    failure_class: ClassVar[FailureClass]

    def __init__(
        self,
        code: str,
        detail: str,
        advice: str,
        *,
        status: int | None = None,
        retryable: bool = False,
        retry_after_s: float | None = None,
        starting: bool = False,
    ) -> None:
        super().__init__(f"{code}: {detail.rstrip(' .')}. {advice}")
        self.code = code
        self.detail = detail
        self.advice = advice
        self.status = status
        self.retryable = retryable
        self.retry_after_s = retry_after_s
        self.starting = starting

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restore, (type(self), self.code, self.detail, self.advice, self.status, self.retryable, self.retry_after_s, self.starting))

    def to_dict(self) -> dict[str, Any]:
        """JSON form, for metadata of a rollout or a trainer's log."""
        return {"failure_class": self.failure_class, "code": self.code, "detail": self.detail, "advice": self.advice}


def _restore(
    cls: type[Failure], code: str, detail: str, advice: str, status: int | None, retryable: bool, after: float | None, starting: bool
) -> Failure:
    return cls(code, detail, advice, status=status, retryable=retryable, retry_after_s=after, starting=starting)


class PolicyFailure(Failure):
    """The request was wrong. In a call it is a mistake of the policy, and the session continues; elsewhere, of the program."""

    failure_class = "policy"


class EnvironmentFailure(Failure):
    """The environment's own code failed. The episode must not count against the policy."""

    failure_class = "environment"


class InfrastructureFailure(Failure):
    """Service, network, key, quota or deadline. The episode must not count against the policy."""

    failure_class = "infrastructure"


CLASSES: dict[FailureClass, type[Failure]] = {
    "policy": PolicyFailure,
    "environment": EnvironmentFailure,
    "infrastructure": InfrastructureFailure,
}

_OF_ENVIRONMENT = frozenset({"setup_failed", "environment_failed", "session_diverged", "answer_too_large"})
_OF_POLICY = frozenset(
    {
        "invalid_body",
        "invalid_request",
        "invalid_json",
        "invalid_split",
        "invalid_index",
        "invalid_index_range",
        "unknown_toolset",
        "unknown_variant",
    }
)
_RETRYABLE_STATUS = frozenset({429, 502, 503, 504})
# They have one of these statuses, but the same request fails again.
_FINAL_CODES = frozenset({"call_timeout", "setup_timeout"})
_UNKNOWN_ENVIRONMENT = frozenset({"deployment_not_found", "environment_not_found", "unknown_variant"})

_STATUS_CODES = {401: "unauthorized", 403: "forbidden", 410: "session_ended", 413: "body_too_large", 500: "environment_failed"}
# Texts of servers without codes that mean the same.
_DETAIL_CODES = (
    ("Deployment not found", "deployment_not_found"),
    ("Active environment not found", "session_not_found"),
    ("Session lost", "session_lost"),
    ("Session expired", "session_expired"),
    ("Session deleted", "session_deleted"),
    ("Session diverged", "session_diverged"),
)


def classify(status: int, code: str | None) -> tuple[FailureClass, bool, str]:
    """Class, whether a repeat may succeed, and advice for an HTTP error. `code` is None if another server or a proxy sent it."""
    failure_class = _class_of_status(status) if code is None else _class_of_code(code)
    retryable = status in _RETRYABLE_STATUS and code not in _FINAL_CODES
    return failure_class, retryable, ADVICE[_advice_for(status, code, failure_class)]


def _class_of_code(code: str) -> FailureClass:
    if code in _OF_ENVIRONMENT:
        return "environment"
    return "policy" if code in _OF_POLICY else "infrastructure"


def _class_of_status(status: int) -> FailureClass:
    if status in (400, 422):
        return "policy"
    return "environment" if status == 500 else "infrastructure"


def _advice_for(status: int, code: str | None, failure_class: FailureClass) -> str:
    if code in _UNKNOWN_ENVIRONMENT:
        return "environment_name"
    if code == "storage_quota_exceeded":
        return "storage"
    if code == "session_not_found" or status == 410 or code in _FINAL_CODES:
        return "session"
    if failure_class == "environment":
        return "environment"
    by_status = {401: "key", 403: "permission", 429: "limit", 500: "service"}
    if status in by_status:
        return by_status[status]
    if status >= 502:
        return "unavailable"
    return "request" if failure_class == "policy" or status == 413 else "other"


def http_failure(
    status: int, body: str, *, retry_after_s: float | None = None, starting: bool = False, code: str | None = None
) -> Failure:
    """The failure of an HTTP response. `body`: its text; a JSON object with `code` and `detail` is read."""
    detail = body[:500] or "no detail"
    try:
        parsed = json.loads(body)
    except ValueError:
        parsed = None
    if isinstance(parsed, dict):
        told = parsed.get("detail", parsed.get("message"))
        detail = told if isinstance(told, str) else json.dumps(told) if told is not None else detail
        code = parsed["code"] if isinstance(parsed.get("code"), str) else code
    code = code or code_in(detail)
    failure_class, retryable, advice = classify(status, code)
    named = code or _STATUS_CODES.get(status, f"http_{status}")
    return CLASSES[failure_class](
        named, detail, advice, status=status, retryable=retryable, retry_after_s=retry_after_s, starting=starting
    )


def unreachable(detail: str) -> InfrastructureFailure:
    """No complete response: refused, reset, cut or silent."""
    return InfrastructureFailure("unreachable", detail, ADVICE["unavailable"], retryable=True)


def refused_call(reason: str, detail: str) -> PolicyFailure:
    """The environment refused a call (`ok: false`). The session continues."""
    return PolicyFailure(reason, detail, ADVICE["policy"])


def tool_failed(detail: str) -> Failure:
    """The tool raised an error. Its text says if the infrastructure failed, such as a model that judges."""
    if detail.startswith("Infrastructure failure: "):
        return InfrastructureFailure("tool_failed", detail, ADVICE["session"])
    return EnvironmentFailure("tool_failed", detail, ADVICE["environment"])


def session_ended(detail: str, code: str | None = None) -> Failure:
    """The session ended on the server, or this client closed it."""
    failure_class, _, advice = classify(410, code)
    return CLASSES[failure_class](code or "session_ended", detail, advice, status=410)


def timed_out(code: str, detail: str) -> InfrastructureFailure:
    """A deadline of this package passed."""
    return InfrastructureFailure(code, detail, ADVICE["deadline"])


def no_slot(detail: str) -> InfrastructureFailure:
    """A session waited for a slot for as long as it may."""
    return InfrastructureFailure("capacity_exhausted", detail, ADVICE["limit"], retryable=True)


_OPENENV: dict[str, FailureClass] = {
    "INVALID_JSON": "policy",
    "UNKNOWN_TYPE": "policy",
    "VALIDATION_ERROR": "policy",
    "EXECUTION_ERROR": "environment",
    "FACTORY_ERROR": "environment",
    "CAPACITY_REACHED": "infrastructure",
    "SESSION_ERROR": "infrastructure",
    # Of its MCP tools.
    "invalid_args": "policy",
    "tool_not_found": "policy",
    "execution_error": "environment",
    "transport_error": "infrastructure",
    "timeout": "infrastructure",
}
_OPENENV_ADVICE = {"policy": "policy", "environment": "environment", "infrastructure": "session"}


def openenv_failure(code: str, detail: str) -> Failure:
    """The failure of an error frame of OpenEnv's socket or of one of its tools (docs/reference/openenv.md#errors)."""
    failure_class = _OPENENV.get(code, "infrastructure")
    advice = ADVICE["limit"] if code == "CAPACITY_REACHED" else ADVICE[_OPENENV_ADVICE[failure_class]]
    return CLASSES[failure_class](code.lower(), detail, advice, retryable=code == "CAPACITY_REACHED")


def failure_of(error: BaseException) -> Failure:
    """The failure that an exception of any client means: of this package, `openreward`, `ors-sdk`, `openenv`, `httpx`, `aiohttp` or
    `requests`. An exception that none of them raises is a failure of the infrastructure with the code `client_error`.
    """
    if isinstance(error, Failure):
        return error
    names = {cls.__name__ for cls in type(error).__mro__}
    text = str(error) or type(error).__name__
    if "ToolCallError" in names:
        return refused_call(*_reason_of(error, text))
    if "ToolFailed" in names or "_RemoteSSEError" in names:
        return tool_failed(text)
    if "MaxRetriesError" in names and getattr(error, "errors", None):
        return failure_of(error.errors[-1])  # type: ignore[attr-defined]
    if "SessionTerminatedError" in names:
        return session_ended(text, code_in(text))
    if "AuthenticationError" in names:
        return http_failure(401, text, code=code_in(text))
    response = getattr(error, "response", None)
    status = getattr(error, "status", None) or getattr(response, "status_code", None) or getattr(error, "status_code", None)
    if isinstance(status, int) and status >= 300:
        body = getattr(error, "message", None) or getattr(response, "text", None) or text
        return http_failure(status, str(body), starting=bool(getattr(error, "backend_starting", False)))
    openenv = re.search(r"\(code: ([A-Z_]+)\)", text)
    if openenv is not None:
        return openenv_failure(openenv[1], text)
    if isinstance(error, (OSError, TimeoutError)) or names & _NETWORK or type(error).__module__.split(".")[0] == "websockets":
        return unreachable(f"{type(error).__name__}: {text}")
    if isinstance(error, RuntimeError):
        return _of_old_client(error, text)
    return InfrastructureFailure("client_error", f"{type(error).__name__}: {text}", ADVICE["other"])


_NETWORK = {"TransportError", "ClientError", "HeartbeatTimeoutError", "RequestException", "TimeoutError"}


def _of_old_client(error: RuntimeError, text: str) -> Failure:
    """openreward 0.1.112 raises RuntimeError for everything in a session: `(sid=...) 404, message='...', url='...'`."""
    http = re.search(r"\(sid=[^)]*\) (\d{3}), message=(['\"])(.*?)\2", text, re.DOTALL)
    if http is not None:
        return http_failure(int(http[1]), http[3])
    if "Session terminated" in text:
        return session_ended(text, code_in(text))
    if type(error) is RuntimeError and "sid=" in text:
        return tool_failed(text)
    return InfrastructureFailure("client_error", f"{type(error).__name__}: {text}", ADVICE["other"])


def code_in(text: str) -> str | None:
    """The code that a text of another client or server contains or means, or None."""
    found = re.search(r"\"code\":\s*\"([a-z_]+)\"", text)
    if found is not None:
        return found[1]
    return next((code for told, code in _DETAIL_CODES if told in text), None)


def _reason_of(error: BaseException, text: str) -> tuple[str, str]:
    detail = str(getattr(error, "detail", text))
    reason = getattr(error, "reason", None)
    return (reason if isinstance(reason, str) else guess_reason(detail)), detail


def guess_reason(detail: str) -> str:
    """The reason of a refusal from a server that sends none (docs/reference/ors.md#error-reasons)."""
    if detail.startswith("Tool input validation error"):
        return "input_validation"
    return "name_collision" if detail.startswith("Tool name collision") else "not_found"
