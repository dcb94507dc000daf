"""Uploads of events from the spool, by separate threads."""

from __future__ import annotations

import atexit
import hashlib
import json
import logging
import multiprocessing
import multiprocessing.util
import os
import random
import threading
import time
import weakref
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from palestra.canonical import number_of
from palestra.failures import ADVICE, Failure, InfrastructureFailure, http_failure, unreachable
from palestra.settings import Settings
from palestra.spool import REJECTED, Segment, append_rejected, orphans
from palestra.transport import CLIENT_ERRORS, CONNECT_TIMEOUT_S, USER_AGENT, no_client, retry_after_of

logger = logging.getLogger("palestra")

# Limits of the official client, which the service expects (docs/reference/ors.md#batches).
MAX_BATCH_EVENTS = 128
MAX_BATCH_BYTES = 1_000_000
MAX_AGE_S = 0.5
SENDERS = 4
REQUEST_S = 60.0
# A file that reached this size is followed by another one, and deleted when the service has its events.
SEGMENT_BYTES = 64_000_000
MAX_SPOOL_BYTES = 10_000_000_000
MAX_REJECTED_BYTES = 1_000_000_000
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.5, 15.0
# The request itself is wrong: a repeat is refused again.
_REFUSALS = frozenset({400, 413, 422})


@dataclass(frozen=True)
class UploadReport:
    """Where the events are.

    Attributes:
        recorded: events of this process, and of ended processes whose files it took over.
        stored: events that the service has.
        rejected: events that the service refused for good; they are in `rejected.jsonl` of the directory, with the reason.
        refused: events that were not recorded, because the spool was full or could not be written. Each is in the log.
        damaged: lines of ended processes whose checksum is wrong, such as the last one of a killed process.
        spilled, spilled_bytes: events that are only on disk.
        directory: of the spool.
        error: the failure that keeps the spilled events from the service, or None.
    """

    recorded: int
    stored: int
    rejected: int
    refused: int
    damaged: int
    spilled: int
    spilled_bytes: int
    directory: str
    error: Failure | None

    @property
    def complete(self) -> bool:
        """The service has every event."""
        return self.spilled == 0 and self.rejected == 0 and self.refused == 0

    def __str__(self) -> str:
        text = f"{self.stored} of {self.recorded} events are stored"
        if self.rejected:
            text += f"; the service rejected {self.rejected} (see {self.directory}/{REJECTED})"
        if self.refused:
            text += f"; {self.refused} were not recorded, because the spool could not take them"
        if self.spilled:
            text += f"; {self.spilled} wait in {self.directory}. The next recorder with this directory and key uploads them, and "
            text += "`palestra-upload` with any key of the organisation."
        return f"{text} {self.error}" if self.spilled and self.error else text


@dataclass
class _Batch:
    segment: Segment
    events: list[bytes]
    lines: int
    end: int
    done: bool = False


def default_directory(target: Settings) -> Path:
    """PALESTRA_SPOOL_DIR, else a directory for the service in the user's state directory."""
    configured = os.environ.get("PALESTRA_SPOOL_DIR")
    if configured:
        return Path(configured)
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state"
    return Path(state) / "palestra/spool" / urlsplit(target.url).netloc.replace(":", "_")


def owner_of(api_key: str | None) -> str:
    """Marks the files of one key, so that another organisation's events are never uploaded with it."""
    return hashlib.sha256((api_key or "").encode()).hexdigest()[:12]


class Uploader:
    """A spool and the threads that empty it. `add` and `report` do no network and wait for none; only `flush` and `close` wait."""

    def __init__(
        self, target: Settings, directory: Path, *, any_owner: bool = False, max_spool_bytes: int = MAX_SPOOL_BYTES
    ) -> None:
        if os.name != "posix":
            raise OSError("The recorder needs a POSIX system: it locks the files of its spool.")
        self._target = target
        self.directory = directory
        self._owner = owner_of(target.api_key)
        self._max_spool_bytes = max_spool_bytes
        self._reset()
        for segment in orphans(directory, None if any_owner else self._owner):
            self._recorded += segment.count()
            self._segments.append(segment)
        if self._segments:
            self._start()
        _instances.add(self)

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._segments: deque[Segment] = deque()
        self._writing: Segment | None = None
        self._batches: deque[_Batch] = deque()
        self._threads: list[threading.Thread] = []
        self._connecting = threading.Lock()
        self._http: httpx.Client | None = None
        self._senders = 0
        self._recorded = self._settled = self._stored = self._rejected = self._refused = self._damaged = 0
        self._oldest: float | None = None
        self._flushing = 0
        self._closed = False
        self._error: Failure | None = None

    def forked(self) -> None:
        """In a child: the files, their events and the threads stay with the parent."""
        for segment in self._segments:
            segment.close(delete=False)
        self._reset()

    def add(self, event: dict[str, Any]) -> None:
        """Records an event. Never raises for a full disk: the event is then counted as refused, and logged."""
        line = _encode(event)
        with self._changed:
            if self._closed:
                raise RuntimeError("The recorder is closed.")
            try:
                self._append(line)
            except (OSError, InfrastructureFailure) as error:
                self._refused += 1
                if self._refused == 1:
                    logger.error("palestra: events are not recorded: %s", error)
                return
            self._recorded += 1
            self._oldest = self._oldest or time.monotonic()
            self._start()
            self._changed.notify()

    def _append(self, line: bytes) -> None:
        if sum(segment.size - segment.stored_to for segment in self._segments) + len(line) > self._max_spool_bytes:
            raise InfrastructureFailure("spool_full", f"{self.directory} holds {self._max_spool_bytes} bytes.", ADVICE["storage"])
        if self._writing is None or self._writing.size >= SEGMENT_BYTES:
            self._writing = Segment.create(self.directory, self._owner)
            self._segments.append(self._writing)
        self._writing.append(line)

    def flush(self, timeout_s: float) -> UploadReport:
        """Waits at most `timeout_s` until the service has every event that was recorded before."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            self._flushing += 1
            self._changed.notify_all()
            goal = self._recorded
            while self._settled < goal and (left := deadline - time.monotonic()) > 0:
                self._changed.wait(left)
            self._flushing -= 1
            return self._report()

    def close(self, timeout_s: float) -> UploadReport:
        """Flushes, then ends the threads and leaves the rest to the next process. Idempotent."""
        if self._closed:
            return self.report()
        report = self.flush(timeout_s)
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            for segment in self._segments:
                segment.close(delete=segment.drained)
        return report

    def report(self) -> UploadReport:
        with self._changed:
            return self._report()

    def _report(self) -> UploadReport:
        spilled = self._recorded - self._settled
        size = sum(segment.size - segment.stored_to for segment in self._segments)
        error = self._error if spilled else None
        return UploadReport(
            self._recorded, self._stored, self._rejected, self._refused, self._damaged, spilled, size, str(self.directory), error
        )

    def _start(self) -> None:
        if self._threads:
            return
        if multiprocessing.parent_process() is not None:
            # Such a process ends without `atexit`.
            multiprocessing.util.Finalize(None, _close_all, exitpriority=1)
        for number in range(SENDERS):
            thread = threading.Thread(target=self._send_all, name=f"palestra-upload-{number}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _send_all(self) -> None:
        try:
            http = self._connect()
        except CLIENT_ERRORS as error:
            self._notice(no_client(error))
            return
        try:
            while (batch := self._next()) is not None:
                if not self._send(http, batch.events):
                    return
                self._settle(batch)
        finally:
            self._disconnect(http)

    def _connect(self) -> httpx.Client:
        """One pool of connections for all senders: loading the certificates takes a moment."""
        with self._connecting:
            if self._http is None:
                headers = {"user-agent": USER_AGENT, "content-type": "application/json"}
                if self._target.api_key:
                    headers["x-api-key"] = self._target.api_key
                self._http = httpx.Client(headers=headers, timeout=httpx.Timeout(REQUEST_S, connect=CONNECT_TIMEOUT_S))
            self._senders += 1
            return self._http

    def _disconnect(self, http: httpx.Client) -> None:
        with self._connecting:
            self._senders -= 1
            if self._senders == 0:
                http.close()

    def _next(self) -> _Batch | None:
        """Waits for a batch that is full, old enough or to be flushed; None at the end."""
        with self._changed:
            while not self._closed:
                segment = next((one for one in self._segments if one.read_to < one.size), None)
                wait = self._wait_for(segment)
                if segment is not None and wait <= 0:
                    events, lines, end = segment.take(MAX_BATCH_EVENTS, MAX_BATCH_BYTES)
                    if segment.read_to >= segment.size:
                        self._oldest = None
                    batch = _Batch(segment, events, lines, end)
                    self._batches.append(batch)
                    return batch
                self._changed.wait(wait if segment is not None else None)
            return None

    def _wait_for(self, segment: Segment | None) -> float:
        """Seconds until the events of a segment should leave."""
        if segment is None:
            return 0.0
        full = segment is not self._writing or segment.size - segment.read_to >= MAX_BATCH_BYTES // 4
        if full or self._flushing or self._oldest is None:
            return 0.0
        return MAX_AGE_S - (time.monotonic() - self._oldest)

    def _settle(self, batch: _Batch) -> None:
        """The service has the batch. Batches end in any order; a segment is deleted when the service has all of its batches."""
        with self._changed:
            batch.done = True
            while self._batches and self._batches[0].done:
                first = self._batches.popleft()
                first.segment.stored_to = first.end
                self._settled += first.lines
                self._damaged += first.lines - len(first.events)
            for segment in [one for one in self._segments if one.drained and not self._closed]:
                if segment is self._writing:
                    segment.clear()
                else:
                    self._segments.remove(segment)
                    segment.close(delete=True)
            self._error = None
            self._changed.notify_all()

    def _send(self, http: httpx.Client, events: list[bytes]) -> bool:
        """Sends until the service stores or refuses the events. False if the uploader was closed before."""
        attempt = 0
        while events:
            try:
                return self._read_receipt(events, self._post(http, events))
            except Failure as failure:
                if failure.status in _REFUSALS:
                    return self._send_apart(http, events, failure)
                if not self._pause(failure, _wait_before(attempt, failure)):
                    return False
                attempt += 1
        return True

    def _send_apart(self, http: httpx.Client, events: list[bytes], failure: Failure) -> bool:
        """Finds the events that are refused by halving the batch."""
        if len(events) == 1:
            return self._reject(events[0], failure.detail)
        middle = len(events) // 2
        return self._send(http, events[:middle]) and self._send(http, events[middle:])

    def _post(self, http: httpx.Client, events: list[bytes]) -> Any:
        try:
            response = http.post(f"{self._target.url}/v1/rollouts", content=b'{"events":[' + b",".join(events) + b"]}")
            if response.status_code < 300:
                return response.json()
        except (httpx.RequestError, ValueError) as error:
            raise unreachable(f"/v1/rollouts: {str(error) or type(error).__name__}") from error
        raise http_failure(response.status_code, response.text, retry_after_s=retry_after_of(response.headers))

    def _read_receipt(self, events: list[bytes], receipt: Any) -> bool:
        try:
            rejected = {int(one["position"]): str(one["detail"]) for one in receipt.get("rejected", [])}
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise unreachable("/v1/rollouts: the response is no receipt") from error
        refused = {position: detail for position, detail in rejected.items() if 0 <= position < len(events)}
        if not all(self._reject(events[position], detail) for position, detail in refused.items()):
            return False
        with self._changed:
            self._stored += len(events) - len(refused)
        return True

    def _reject(self, event: bytes, detail: str) -> bool:
        """Keeps an event that the service refused. It waits in the spool while the file of such events cannot take it. False if the uploader
        was closed meanwhile.
        """
        logger.warning("palestra: the service rejected an event: %s", detail)
        line = json.dumps({"detail": detail, "event": json.loads(event)}).encode() + b"\n"
        attempt = 0
        while True:
            try:
                append_rejected(self.directory, line, MAX_REJECTED_BYTES)
                break
            except OSError as error:
                failure = InfrastructureFailure("rejected_not_kept", str(error), ADVICE["rejected"])
                if not self._pause(failure, _wait_before(attempt, failure)):
                    return False
                attempt += 1
        with self._changed:
            self._rejected += 1
        return True

    def _notice(self, failure: Failure) -> None:
        with self._changed:
            self._notice_locked(failure)

    def _notice_locked(self, failure: Failure) -> None:
        if self._error is None or self._error.code != failure.code:
            logger.warning("palestra: events wait in %s: %s", self.directory, failure)
        self._error = failure

    def _pause(self, failure: Failure, wait_s: float) -> bool:
        """Waits before a repeat. False if the uploader was closed meanwhile."""
        deadline = time.monotonic() + wait_s
        with self._changed:
            self._notice_locked(failure)
            while not self._closed and (left := deadline - time.monotonic()) > 0:
                self._changed.wait(left)
            return not self._closed


def _wait_before(attempt: int, failure: Failure) -> float:
    if failure.retry_after_s is not None:
        return min(failure.retry_after_s, _LONGEST_WAIT_S)
    return float(min(_FIRST_WAIT_S * 2.0 ** min(attempt, 10), _LONGEST_WAIT_S) * random.uniform(0.5, 1.0))


def _number_or_text(value: Any) -> Any:
    try:
        return number_of(value)
    except TypeError:
        return str(value)


def _encode(event: dict[str, Any]) -> bytes:
    text = json.dumps(event, ensure_ascii=False, separators=(",", ":"), default=_number_or_text)
    try:
        return text.encode()
    except UnicodeEncodeError:  # A lone surrogate, which UTF-8 does not have.
        return json.dumps(event, separators=(",", ":"), default=_number_or_text).encode()


_instances: weakref.WeakSet[Uploader] = weakref.WeakSet()


def _forked() -> None:
    for uploader in list(_instances):
        uploader.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


@atexit.register
def _close_all() -> None:
    for uploader in list(_instances):
        report = uploader.close(5.0)
        if not report.complete:
            logger.warning("palestra: %s", report)
