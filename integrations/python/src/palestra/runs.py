"""The client and the recorders that all adapters of a process share."""

from __future__ import annotations

import atexit
import os
import threading
from typing import Any

from palestra import steps
from palestra.client import Client
from palestra.record import Recorder
from palestra.settings import Settings, settings

_lock = threading.Lock()
_clients: dict[tuple[int, Settings], Client] = {}
_recorders: dict[tuple[int, Settings, str], Recorder] = {}


def client_of(url: str | None = None, api_key: str | None = None) -> Client:
    """The client of this process for a service: by default that of the variables in `palestra.settings`."""
    target = settings(url, api_key)
    with _lock:
        key = (os.getpid(), target)
        if key not in _clients:
            _clients[key] = Client(url, api_key)
        return _clients[key]


def recorder_of(run: str | None, framework: str, **run_info: Any) -> Recorder:
    """The recorder of this process for a run; closed when the process ends.

    Args:
        run: name of the run, by default PALESTRA_RUN, then the name of the framework. All processes of a training use the same.
        framework: such as `trl`, stored with the run.
        run_info: further settings of the run; those of the first caller count.
    """
    name = run or os.environ.get("PALESTRA_RUN") or framework
    with _lock:
        key = (os.getpid(), settings(), name)
        if key not in _recorders:
            _recorders[key] = Recorder(name, run_info={"framework": framework, **run_info})
        return _recorders[key]


def _close() -> None:
    # Episodes that were left record their end first.
    steps.close_all()
    with _lock:
        mine = [recorder for (pid, *_), recorder in _recorders.items() if pid == os.getpid()]
    for recorder in mine:
        recorder.close()


def _forget_lock() -> None:
    global _lock
    _lock = threading.Lock()


atexit.register(_close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_lock)
