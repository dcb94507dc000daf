"""Events on disk until the service has them: append-only files of lines with checksums, one process each.

A line is the CRC-32 of an event in 8 hex digits, a space, and the event as JSON. An event is in its file before `append` returns, so that
it survives `kill -9` of the process (not a power failure: nothing is synced). A file whose process is gone belongs to the next process that
locks it. Events have ids, so that a repeated upload of a file stores nothing twice.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
import uuid
import zlib
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Not a POSIX system, where `Uploader` refuses to start.
    pass

logger = logging.getLogger("palestra")

SUFFIX = ".spool"
REJECTED = "rejected.jsonl"
# Never through a link, and not blocked by a pipe, that another user put in the place of a file. 0 on other systems than POSIX.
_OPEN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_READ_BYTES = 1 << 16


class Segment:
    """One file. Not thread-safe: its owner locks."""

    def __init__(self, path: Path, fd: int, size: int) -> None:
        self.path = path
        self.size = size
        """Bytes of whole events."""
        self.read_to = 0
        """Bytes that were taken for upload."""
        self.stored_to = 0
        """Bytes whose events are settled: stored or refused by the service."""
        self._fd = fd

    @classmethod
    def create(cls, directory: Path, owner: str) -> Segment:
        """A new empty file. Raises OSError if the directory cannot be written, or is not of this user alone."""
        prepare_directory(directory)
        path = directory / f"{owner}-{uuid.uuid4().hex}{SUFFIX}"
        hidden = path.with_suffix(".new")
        fd = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | _OPEN, 0o600)
        _lock(fd)
        # Only now can another process find it.
        hidden.rename(path)
        return cls(path, fd, 0)

    @classmethod
    def adopt(cls, path: Path) -> Segment | None:
        """The file of a process that is gone; None if its process runs, another one adopted it, or it is not a file of this user."""
        try:
            fd = _open_own(path, os.O_RDWR | os.O_APPEND)
        except FileNotFoundError:
            return None
        except OSError as error:
            logger.warning("palestra: events of an ended process are not uploaded: %s", error)
            return None
        if not _lock(fd) or os.fstat(fd).st_nlink == 0:
            os.close(fd)
            return None
        return cls(path, fd, os.fstat(fd).st_size)

    @property
    def drained(self) -> bool:
        return self.stored_to >= self.size

    def append(self, event: bytes) -> None:
        """Raises OSError if the event is not completely in the file; then nothing of it is."""
        line = b"%08x %s\n" % (zlib.crc32(event), event)
        try:
            written = os.write(self._fd, line)
            if written < len(line):
                raise OSError(errno.ENOSPC, f"only {written} of {len(line)} bytes were written", str(self.path))
        except OSError:
            os.ftruncate(self._fd, self.size)
            raise
        self.size += len(line)

    def take(self, max_events: int, max_bytes: int) -> tuple[list[bytes], int, int]:
        """The next events, at most so many, at least one if there is one. Returns (events, lines, end): `lines` also counts damaged lines,
        which are skipped; `end` is the position behind the last line.
        """
        events: list[bytes] = []
        lines = total = 0
        for line, end in self._lines(self.read_to):
            event = _event_of(line)
            length = 0 if event is None else len(event)
            if lines and (len(events) >= max_events or total + length > max_bytes):
                break
            lines, total, self.read_to = lines + 1, total + length, end
            if event is not None:
                events.append(event)
        return events, lines, self.read_to

    def count(self) -> int:
        """Lines from `stored_to` on."""
        return sum(1 for _ in self._lines(self.stored_to))

    def _lines(self, start: int) -> Iterator[tuple[bytes, int]]:
        """Lines without their ends, each with the position behind it. The last one of a killed process may be incomplete."""
        position, rest = start, b""
        while position < self.size:
            chunk = os.pread(self._fd, min(max(_READ_BYTES, len(rest)), self.size - position), position)
            if not chunk:
                break
            position += len(chunk)
            rest += chunk
            *lines, rest = rest.split(b"\n")
            end = position - len(rest) - sum(len(line) + 1 for line in lines)
            for line in lines:
                end += len(line) + 1
                yield line, end
        if rest:
            yield rest, self.size

    def clear(self) -> None:
        """Empties a drained file, so that it does not grow without limit."""
        os.ftruncate(self._fd, 0)
        self.size = self.read_to = self.stored_to = 0

    def close(self, *, delete: bool) -> None:
        """Releases the lock. `delete`: the events are settled, so the file goes first."""
        if self._fd < 0:
            return
        if delete:
            self.path.unlink(missing_ok=True)
        os.close(self._fd)
        self._fd = -1


def orphans(directory: Path, owner: str | None) -> list[Segment]:
    """Adopts the files of ended processes, of one owner or of all, oldest first. Empty ones are deleted. Raises OSError as `Segment.create` does."""
    if not directory.is_dir():
        return []
    prepare_directory(directory)
    paths = directory.glob(f"{owner or '*'}-*{SUFFIX}")
    adopted: list[Segment] = []
    for segment in map(Segment.adopt, sorted(paths, key=_age)):
        if segment is not None and segment.drained:
            segment.close(delete=True)
        elif segment is not None:
            adopted.append(segment)
    return adopted


def prepare_directory(directory: Path) -> None:
    """Creates it for this user alone. Raises OSError if it belongs to another user, or others can write in it."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    state = directory.stat()
    if state.st_uid != os.geteuid():
        raise PermissionError(
            errno.EPERM, f"It belongs to user {state.st_uid}, not to {os.geteuid()}; pass a spool_dir of this user", str(directory)
        )
    if state.st_mode & 0o022:
        raise PermissionError(errno.EPERM, "Other users can write in it; allow it to this user alone with `chmod 700`", str(directory))


def append_rejected(directory: Path, line: bytes, max_bytes: int) -> None:
    """Adds a line to the rejected events. Raises OSError if it is not completely in the file; then nothing of it is."""
    fd = _open_own(directory / REJECTED, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        # Files of earlier versions could be read by others.
        os.fchmod(fd, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX)
        size = os.fstat(fd).st_size
        if size + len(line) > max_bytes:
            raise OSError(errno.EFBIG, f"It would become larger than {max_bytes} bytes", str(directory / REJECTED))
        written = os.write(fd, line)
        if written < len(line):
            os.ftruncate(fd, size)
            raise OSError(errno.ENOSPC, f"Only {written} of {len(line)} bytes were written", str(directory / REJECTED))
    finally:
        os.close(fd)


def _open_own(path: Path, flags: int) -> int:
    """Opens a regular file of this user. Raises OSError for another one, also for a link."""
    fd = os.open(path, flags | _OPEN, 0o600)
    state = os.fstat(fd)
    if stat.S_ISREG(state.st_mode) and state.st_uid == os.geteuid() and state.st_nlink <= 1:
        return fd
    os.close(fd)
    raise PermissionError(errno.EPERM, f"It is not a file of user {os.geteuid()} alone", str(path))


def _age(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except OSError:
        return 0.0


def _event_of(line: bytes) -> bytes | None:
    checksum, event = line[:8], line[9:]
    return event if checksum == b"%08x" % zlib.crc32(event) else None


def _lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
