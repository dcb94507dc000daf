"""Token ids and log probabilities beside the rollouts. The service does not store them: they stay in files of the trainer."""

from __future__ import annotations

import errno
import json
import os
import threading
import uuid
import weakref
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from palestra.canonical import number_of


@dataclass(frozen=True)
class TokenRecord:
    """Tokens of one generation.

    Attributes:
        rollout: id of the rollout.
        message: id of the message of the reply (`event_id` in exports).
        index: position of that message in the rollout, from 0.
        prompt_token_ids: the context of the generation, or None.
        token_ids: the generated tokens.
        logprobs: natural logarithms, one for each generated token, or None.
    """

    rollout: str
    message: str
    index: int
    prompt_token_ids: list[int] | None
    token_ids: list[int]
    logprobs: list[float] | None


class TokenSidecar:
    """One append-only file of JSON lines for each process in `directory`. Thread-safe; a forked child writes another file."""

    def __init__(self, directory: str | Path) -> None:
        self._directory = Path(directory)
        self._lock = threading.Lock()
        self._fd = -1
        self._pid = 0
        _instances.add(self)

    def write(self, record: TokenRecord) -> None:
        """Raises OSError if the record is not completely in the file; then nothing of it is."""
        line = json.dumps(asdict(record), separators=(",", ":"), default=number_of).encode() + b"\n"
        with self._lock:
            if self._pid != os.getpid():
                self._open()
            self._append(line)

    def _append(self, line: bytes) -> None:
        # Other lines would follow a part of this one, and the file could not be read any more.
        size = os.fstat(self._fd).st_size
        try:
            written = os.write(self._fd, line)
            if written < len(line):
                raise OSError(errno.ENOSPC, f"only {written} of {len(line)} bytes were written", str(self._directory))
        except OSError:
            os.ftruncate(self._fd, size)
            raise

    def _open(self) -> None:
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self._directory / f"tokens-{uuid.uuid4().hex}.jsonl"
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_CLOEXEC", 0), 0o600)
        self._pid = os.getpid()

    def forked(self) -> None:
        """In a child: another thread may have held the lock."""
        self._lock = threading.Lock()


_instances: weakref.WeakSet[TokenSidecar] = weakref.WeakSet()


def _forked() -> None:
    for sidecar in list(_instances):
        sidecar.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def read_tokens(path: str | Path, rollout: str | None = None) -> Iterator[TokenRecord]:
    """Records of a file or of all files of a directory, of one rollout or of all. An incomplete last line is left out."""
    given = Path(path)
    for file in sorted(given.glob("tokens-*.jsonl")) if given.is_dir() else [given]:
        with file.open("rb") as lines:
            for line in lines:
                if line.endswith(b"\n") and (rollout is None or rollout.encode() in line):
                    record = TokenRecord(**json.loads(line))
                    if rollout is None or record.rollout == rollout:
                        yield record
