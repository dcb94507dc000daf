"""The synchronous HTTP client of OpenEnv's first generation."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Generic, TypeVar

import requests

from ._docker import LocalDockerProvider
from ._types import Action, Observation, State, StepResult

ActionT = TypeVar("ActionT", bound=Action)
ObservationT = TypeVar("ObservationT", bound=Observation)
ClientT = TypeVar("ClientT", bound="HTTPEnvClient[Any, Any]")


class HTTPEnvClient(Generic[ActionT, ObservationT]):
    """
    One episode after another on the server at `base_url`. Every method raises `requests.RequestException` when the server does not answer with
    success in time.
    """

    observation_class: type[Observation]
    state_class: type[State] = State

    def __init__(
        self,
        base_url: str,
        request_timeout_s: float = 15.0,
        default_headers: dict[str, str] | None = None,
        provider: LocalDockerProvider | None = None,
    ) -> None:
        self._base = base_url.rstrip("/")
        self._timeout = float(request_timeout_s)
        self._http = requests.Session()
        self._http.headers.update(default_headers or {})
        self._provider = provider

    @classmethod
    def from_docker_image(cls: type[ClientT], image: str, provider: LocalDockerProvider | None = None, **options: Any) -> ClientT:
        """A client of a new container, which `close` ends. Options are `port` and `env_vars`."""
        provider = provider or LocalDockerProvider()
        base_url = provider.start_container(image, **options)
        try:
            provider.wait_for_ready(base_url)
        except BaseException:
            provider.stop_container()
            raise
        return cls(base_url=base_url, provider=provider)

    def reset(self) -> StepResult[ObservationT]:
        return self._result(self._ask("POST", "/reset", {}))

    def step(self, action: ActionT) -> StepResult[ObservationT]:
        return self._result(self._ask("POST", "/step", {"action": self._payload(action), "timeout_s": int(self._timeout)}))

    def state(self) -> Any:
        told = self._ask("GET", "/state", None)
        known = {name.name for name in fields(self.state_class)} - {"extra"}
        extra = {name: value for name, value in told.items() if name not in known}
        return self.state_class(**{name: value for name, value in told.items() if name in known}, extra=extra)

    def close(self) -> None:
        """Ends the container, if it was started by `from_docker_image`; a second call does nothing."""
        self._http.close()
        if self._provider is not None:
            self._provider.stop_container()

    def _ask(self, method: str, path: str, body: Any) -> dict[str, Any]:
        answer = self._http.request(method, self._base + path, json=body, timeout=self._timeout)
        answer.raise_for_status()
        return answer.json()

    def _payload(self, action: ActionT) -> dict[str, Any]:
        return {name.name: getattr(action, name.name) for name in fields(action) if name.name != "metadata"}

    def _result(self, answer: dict[str, Any]) -> StepResult[ObservationT]:
        """A field that the server does not send has the value that its class declares; one that the class does not know is left out."""
        reward, done = answer.get("reward"), bool(answer.get("done", False))
        seen = answer.get("observation") or {}
        own = {name.name for name in fields(self.observation_class)} - {"done", "reward"}
        known = {name: value for name, value in seen.items() if name in own}
        observation = self.observation_class(done=done, reward=reward, **known)
        return StepResult(observation=observation, reward=reward, done=done)
