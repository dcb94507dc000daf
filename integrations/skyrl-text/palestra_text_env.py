"""Palestra's environments for SkyRL-Gym: a `BaseTextEnv` that needs nothing but `requests`.

    from skyrl_gym.envs import register
    register(id="palestra", entry_point="palestra_text_env:PalestraTextEnv")

Columns of the data set (all but the first two are optional):
    env_name     "owner/name", "owner/name@version"
    split, task_index   or task_spec: which task
    parse        "tool_call" (default): the first <tool_call> with JSON; "action": the last <action>
    max_turns    set by SkyRL from generator.max_turns
    variant, toolset

Environment variables: PALESTRA_URL and PALESTRA_API_KEY, else OPENREWARD_SESSION_URL, OPENREWARD_URL and OPENREWARD_API_KEY.
PALESTRA_RUN writes each episode as a rollout of that run.

One failed episode must not end a training step: nothing here raises once the object exists. What the infrastructure could not do ends the
episode with reward 0.0 and metadata {"infrastructure_failure": True, "mask": True, ...}: leave such episodes out of the loss.
"""

import json
import logging
import os
import threading
import time
import uuid
import weakref
from typing import Any, Dict, List, Optional, Tuple

import requests
from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput, ConversationType

logger = logging.getLogger(__name__)

MAX_ATTEMPTS = 5
RETRY_BASE_DELAY = 3.0  # seconds: 3, 6, 12, 24, as SkyRL's own adapters wait
RETRYABLE_STATUS = frozenset({429, 502, 503})
WAIT_SECONDS = 120  # a turn that takes longer is asked for again, as often as STEP_DEADLINE allows
STEP_DEADLINE = float(os.environ.get("PALESTRA_STEP_DEADLINE", 6 * 3600))
CONNECT_TIMEOUT = 10
KEEP_ALIVE = 60.0  # seconds between signs of life of an episode whose model is writing


class PalestraError(Exception):
    """A request that came to nothing. `code` is Palestra's, or `unreachable`."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class _Api:
    """Requests of one episode. Every one of them may be sent twice: sessions are named by us, turns are numbered."""

    def __init__(self, url: str, key: Optional[str]) -> None:
        self._url = url.rstrip("/") + "/v1/text-sessions"
        self._http = requests.Session()
        if key:
            self._http.headers["X-API-Key"] = key

    def ask(self, method: str, path: str, body: Optional[dict] = None, attempts: int = MAX_ATTEMPTS, timeout: float = 60.0) -> dict:
        """The answer of one request. Waits 3, 6, 12, 24 s between attempts that may succeed later; raises PalestraError."""
        deadline = time.monotonic() + STEP_DEADLINE
        attempt = 0
        while True:
            try:
                return self._once(method, path, body, timeout)
            except _Retryable as failure:
                # The turn runs and is joined: no attempt of its own.
                if failure.code == "turn_running" and time.monotonic() < deadline:
                    continue
                attempt += 1
                if attempt >= attempts:
                    raise PalestraError(failure.code, str(failure)) from failure
                delay = RETRY_BASE_DELAY * 2 ** (attempt - 1)
                logger.warning("palestra: %s (attempt %d of %d), again in %g s", failure, attempt, attempts, delay)
                time.sleep(delay)

    def _once(self, method: str, path: str, body: Optional[dict], timeout: float) -> dict:
        try:
            answer = self._http.request(method, self._url + path, json=body, timeout=(CONNECT_TIMEOUT, timeout))
            parsed = answer.json()
        except (requests.RequestException, ValueError) as error:
            raise _Retryable("unreachable", f"{method} {path}: {error}") from error
        if answer.ok and isinstance(parsed, dict):
            return parsed
        code, message = str(parsed.get("code", "unknown")), str(parsed.get("message", answer.reason))
        if answer.status_code in RETRYABLE_STATUS:
            raise _Retryable(code, message)
        raise PalestraError(code, message)

    def close(self) -> None:
        self._http.close()


class _Retryable(PalestraError):
    pass


class _Keeper:
    """One thread for all episodes of this process: a session without a sign of life for a quarter of an hour ends."""

    def __init__(self) -> None:
        self._envs: "weakref.WeakSet[PalestraTextEnv]" = weakref.WeakSet()
        self._lock = threading.Lock()
        self._thread: Optional[threading.Thread] = None

    def add(self, env: "PalestraTextEnv") -> None:
        with self._lock:
            self._envs.add(env)
            # Also after a fork, which takes no threads along.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="palestra-keep-alive", daemon=True)
                self._thread.start()

    def discard(self, env: "PalestraTextEnv") -> None:
        with self._lock:
            self._envs.discard(env)

    def _run(self) -> None:
        while True:
            time.sleep(KEEP_ALIVE)
            with self._lock:
                envs = list(self._envs)
            for env in envs:
                env._keep_alive()
            del envs


_keeper = _Keeper()


def _end_session(url: str, key: Optional[str], state: Dict[str, Optional[str]]) -> None:
    """Ends a session, if there is one; once. Also run when the object is collected, and when the process ends."""
    session, state["session"] = state["session"], None
    if session is None:
        return
    api = _Api(url, key)
    try:
        api.ask("DELETE", f"/{session}", attempts=2, timeout=30.0)
    except Exception as error:  # The server ends it by itself after a while.
        logger.warning("palestra: session %s was not closed: %s", session, error)
    finally:
        api.close()


class PalestraTextEnv(BaseTextEnv):
    """One episode of an environment on a Palestra server."""

    def __init__(self, env_config: Any = None, extras: Dict[str, Any] = {}):
        super().__init__()
        self.env_name: str = extras["env_name"]
        self.parse: str = extras.get("parse") or "tool_call"
        self.max_turns = int(extras.get("max_turns", 10 if self.parse == "tool_call" else 1))
        self._extras = dict(extras)
        env = os.environ
        url = env.get("PALESTRA_URL") or env.get("OPENREWARD_SESSION_URL") or env.get("OPENREWARD_URL")
        if not url:
            raise ValueError("PALESTRA_URL must be the URL of a Palestra server")
        self._url, self._key = url, env.get("PALESTRA_API_KEY") or env.get("OPENREWARD_API_KEY")
        self._api = _Api(url, self._key)
        self._rewards: List[float] = []
        self._failure: Optional[PalestraError] = None
        self._state: Dict[str, Optional[str]] = {"session": None}
        self._finalizer = weakref.finalize(self, _end_session, self._url, self._key, self._state)

    def init(self, prompt: ConversationType) -> Tuple[ConversationType, Dict[str, Any]]:
        """Opens the session. A failure is told by the first step."""
        if isinstance(prompt, str):
            prompt = json.loads(prompt)
        session = str(uuid.uuid4())
        self._state["session"] = session
        try:
            # May wait for a slot. Repeated with the same id it is the same session.
            self._api.ask("POST", "", self._opening(session), timeout=STEP_DEADLINE)
            _keeper.add(self)
        except Exception as error:
            self._fail(error)
        return prompt, {}

    def _opening(self, session: str) -> dict:
        extras = self._extras
        body: Dict[str, Any] = {"id": session, "environment": self.env_name, "parse": self.parse, "max_turns": self.max_turns, "prompt": []}
        if extras.get("task_spec") is not None:
            spec = extras["task_spec"]
            body["task_spec"] = json.loads(spec) if isinstance(spec, str) else spec
        else:
            body["split"], body["index"] = extras["split"], int(extras["task_index"])
        for name in ("variant", "toolset"):
            if extras.get(name) is not None:
                body[name] = extras[name]
        run = os.environ.get("PALESTRA_RUN")
        if run:
            index = extras.get("task_index")
            body["recording"] = {"name": run, "split": extras.get("split"), "task_index": None if index is None else int(index)}
        return body

    def step(self, action: str) -> BaseTextEnvStepOutput:
        self.turns += 1
        session = self._state["session"]
        if self._failure is not None or session is None:
            return self._ended()
        body = {"text": action, "turn": self.turns, "wait_s": WAIT_SECONDS}
        try:
            answer = self._api.ask("POST", f"/{session}/step", body, timeout=WAIT_SECONDS + 30.0)
            output = BaseTextEnvStepOutput(
                observations=answer["observations"], reward=answer["reward"], done=answer["done"], metadata=answer["metadata"]
            )
        except Exception as error:
            self._fail(error)
            return self._ended()
        if self.parse == "action" or "tool_name" in output["metadata"]:
            self._rewards.append(output["reward"])
        return output

    def get_metrics(self) -> Dict[str, Any]:
        return {"turns": self.turns, "total_reward": sum(self._rewards), "num_rewards": len(self._rewards)}

    def close(self) -> None:
        """Ends the session; idempotent, and never raises."""
        try:
            _keeper.discard(self)
            self._finalizer()
            self._api.close()
        except Exception as error:
            logger.warning("palestra: %s", error)

    def _fail(self, error: Exception) -> None:
        logger.warning("palestra: the episode of %s ends: %s", self.env_name, error)
        self._failure = error if isinstance(error, PalestraError) else PalestraError("client_error", str(error))
        self.close()

    def _ended(self) -> BaseTextEnvStepOutput:
        code = "session_closed" if self._failure is None else self._failure.code
        message = "The session was closed." if self._failure is None else str(self._failure)
        metadata = {"infrastructure_failure": True, "mask": True, "failure_class": "infrastructure", "code": code, "message": message}
        return BaseTextEnvStepOutput(observations=[], reward=0.0, done=True, metadata=metadata)

    def _keep_alive(self) -> None:
        session = self._state["session"]
        if session is None:
            return
        api = _Api(self._url, self._key)
        try:
            api.ask("GET", f"/{session}", attempts=1, timeout=10.0)
        except Exception as error:  # The next step says what is wrong.
            logger.debug("palestra: %s", error)
        finally:
            api.close()
