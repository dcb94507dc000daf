"""Whose failure an error is, equal in both clients."""

from __future__ import annotations

import json
import pickle
from typing import Any

import httpx
import pytest
from conftest import FIXTURES

from palestra.failures import (
    CLASSES,
    EnvironmentFailure,
    Failure,
    InfrastructureFailure,
    PolicyFailure,
    classify,
    failure_of,
    http_failure,
    openenv_failure,
    refused_call,
    session_ended,
    tool_failed,
    unreachable,
)
from palestra.transport import _failure_of_event

SHARED = json.loads((FIXTURES / "client-failures.json").read_text())["failures"]


def made_of(when: dict[str, Any]) -> Failure:
    if "network" in when:
        return unreachable(when["network"])
    if "call" in when:
        return refused_call(when["call"]["reason"], when["call"]["error"])
    if when.get("event") == "error":
        return tool_failed(when["data"])
    if when.get("event") == "failure":
        return _failure_of_event(json.dumps(when["data"]), is_call=True)
    body = "<html>" if when["code"] is None else json.dumps({"code": when["code"], "detail": "x"})
    return http_failure(when["status"], body)


@pytest.mark.parametrize("case", SHARED, ids=lambda case: case["name"])
def test_the_fixture_of_both_clients(case: dict[str, Any]) -> None:
    failure = made_of(case["when"])
    assert (failure.failure_class, failure.retryable, failure.advice) == (case["class"], case["retried"], case["advice"])
    assert isinstance(failure, CLASSES[case["class"]])


def test_the_code_stays_the_code_of_the_catalogue() -> None:
    assert http_failure(410, '{"code": "session_lost", "detail": "Session lost"}').code == "session_lost"
    assert http_failure(502, "<html>").code == "http_502"
    # The official client passes on the text only.
    assert http_failure(410, "Session lost: the process that ran it died.").code == "session_lost"


def test_a_failure_says_what_to_do() -> None:
    text = str(http_failure(401, '{"code": "key_revoked", "detail": "This API key was revoked."}'))
    assert text.startswith("key_revoked: This API key was revoked. Create another API key")


@pytest.mark.parametrize("failure", [unreachable("x"), tool_failed("y"), refused_call("not_found", "z"), session_ended("s")])
def test_failures_pickle_as_themselves(failure: Failure) -> None:
    copy = pickle.loads(pickle.dumps(failure))
    assert type(copy) is type(failure)
    assert (copy.code, copy.detail, copy.advice, str(copy)) == (failure.code, failure.detail, failure.advice, str(failure))


class OpenRewardError(Exception):
    pass


class ToolCallError(OpenRewardError):
    def __init__(self, reason: str | None, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail = reason, detail


class ToolFailed(OpenRewardError):
    pass


class SessionTerminatedError(OpenRewardError):
    pass


class MaxRetriesError(OpenRewardError):
    def __init__(self, errors: list[Exception]) -> None:
        super().__init__("Exceeded 5 retries")
        self.errors = errors


class ClientError(Exception):
    """aiohttp's"""


class ClientResponseError(ClientError):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


class AuthenticationError(Exception):
    pass


@pytest.mark.parametrize(
    ("error", "expected", "code"),
    [
        (ToolCallError("input_validation", "bad"), PolicyFailure, "input_validation"),
        (ToolCallError(None, "'x' is not a valid tool"), PolicyFailure, "not_found"),
        (ToolFailed("boom"), EnvironmentFailure, "tool_failed"),
        (SessionTerminatedError("server returned 410: Session lost: the process"), InfrastructureFailure, "session_lost"),
        (SessionTerminatedError("25 consecutive ping failures"), InfrastructureFailure, "session_ended"),
        (MaxRetriesError([ClientError("x"), ClientResponseError(503, "busy")]), InfrastructureFailure, "http_503"),
        (ClientResponseError(404, "Deployment not found. Is it correct?"), InfrastructureFailure, "deployment_not_found"),
        (ClientResponseError(500, "ValueError: x"), EnvironmentFailure, "environment_failed"),
        (AuthenticationError('  • {"code": "key_revoked"}'), InfrastructureFailure, "key_revoked"),
        (ClientError("reset"), InfrastructureFailure, "unreachable"),
        (httpx.ReadTimeout("slow"), InfrastructureFailure, "unreachable"),
        (ConnectionRefusedError("refused"), InfrastructureFailure, "unreachable"),
        (RuntimeError("(sid=7) 404, message='Active environment not found', url='http://x'"), InfrastructureFailure, "session_not_found"),
        (RuntimeError("(sid=7) the lamp fell"), EnvironmentFailure, "tool_failed"),
        (RuntimeError("Server error: full (code: CAPACITY_REACHED)"), InfrastructureFailure, "capacity_reached"),
        (RuntimeError("Server error: no (code: VALIDATION_ERROR)"), PolicyFailure, "validation_error"),
        (KeyError("mine"), InfrastructureFailure, "client_error"),
    ],
)
def test_exceptions_of_other_clients(error: Exception, expected: type[Failure], code: str) -> None:
    failure = failure_of(error)
    assert (type(failure), failure.code) == (expected, code)


def test_openenv_codes() -> None:
    assert isinstance(openenv_failure("EXECUTION_ERROR", "x"), EnvironmentFailure)
    assert isinstance(openenv_failure("invalid_args", "x"), PolicyFailure)
    assert openenv_failure("CAPACITY_REACHED", "x").retryable


def test_a_timeout_of_a_call_is_not_repeated() -> None:
    assert classify(504, "call_timeout")[:2] == ("infrastructure", False)
