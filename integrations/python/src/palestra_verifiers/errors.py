"""Failures of this package as errors of verifiers, and back."""

from __future__ import annotations

from collections.abc import Mapping

import verifiers.v1 as vf

from palestra import Failure, InfrastructureFailure
from palestra.failures import ADVICE, CLASSES

# Of `Trace.info`.
INFO_KEY = "palestra"


def error_of(failure: Failure, trace: vf.Trace) -> vf.RolloutError:
    """The error that verifiers records on the trace, so that no reward of 0 hides the failure."""
    trace.info[INFO_KEY] = failure.to_dict()
    if failure.failure_class == "environment":
        return vf.EnvError(str(failure))
    # A mistake of the configuration, such as an unknown split, has the class of the policy.
    return vf.TaskError(str(failure)) if failure.failure_class == "policy" else vf.SandboxError(str(failure))


def failure_from(told: Mapping[str, str]) -> Failure:
    """The failure of which `told` is `Failure.to_dict`."""
    return CLASSES[told["failure_class"]](told["code"], told["detail"], told["advice"])  # type: ignore[index]


def failure_of_trace(trace: vf.Trace) -> Failure | None:
    """Why a trace has no valid reward; None if it has one."""
    if trace.ok:
        return None
    told = trace.info.get(INFO_KEY)
    if told is not None:
        return failure_from(told)
    error = trace.errors[-1] if trace.errors else None
    code = "chat_failed" if error is not None and error.type == "ProviderError" else "client_error"
    detail = "The rollout was interrupted." if error is None else f"{error.type}: {error.message}"
    return InfrastructureFailure(code, detail, ADVICE["chat"])
