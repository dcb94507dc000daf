"""Containers by the `docker` command on PATH, which is Docker's or Palestra's."""

from __future__ import annotations

import socket
import subprocess
import time

import requests

VERSION_TIMEOUT_S = 5
STOP_TIMEOUT_S = 10
POLL_TIMEOUT_S = 2
POLL_EVERY_S = 0.1


class LocalDockerProvider:
    """One container at a time: started, waited for, stopped."""

    def __init__(self) -> None:
        self._id: str | None = None
        try:
            subprocess.run(["docker", "version"], check=True, capture_output=True, timeout=VERSION_TIMEOUT_S)
        except (OSError, subprocess.SubprocessError) as error:
            raise RuntimeError("there is no working `docker` command: put integrations/skyrl-openenv/bin of Palestra on PATH") from error

    def start_container(self, image: str, port: int | None = None, env_vars: dict[str, str] | None = None) -> str:
        """Base URL of the container, which need not answer yet. RuntimeError with what docker said."""
        port = port or _free_port()
        name = f"{image.rsplit('/', 1)[-1].split(':')[0]}-{time.time_ns() // 1_000_000}"
        variables = [word for key, value in (env_vars or {}).items() for word in ("-e", f"{key}={value}")]
        command = ["docker", "run", "-d", "--name", name, "-p", f"{port}:8000", *variables, image]
        started = subprocess.run(command, capture_output=True, text=True)
        if started.returncode != 0:
            raise RuntimeError(f"{image} does not start: {started.stderr.strip()}")
        self._id = started.stdout.strip()
        return f"http://localhost:{port}"

    def wait_for_ready(self, base_url: str, timeout_s: float = 30.0) -> None:
        """TimeoutError if it does not become healthy in time."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            try:
                if requests.get(f"{base_url}/health", timeout=POLL_TIMEOUT_S).status_code == 200:
                    return
            except requests.RequestException:
                pass
            time.sleep(POLL_EVERY_S)
        raise TimeoutError(f"the container at {base_url} was not ready within {timeout_s} s")

    def stop_container(self) -> None:
        """Does not fail: what is gone is gone."""
        container, self._id = self._id, None
        if container is None:
            return
        for verb in ("stop", "rm"):
            try:
                subprocess.run(["docker", verb, container], capture_output=True, timeout=STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                pass


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
