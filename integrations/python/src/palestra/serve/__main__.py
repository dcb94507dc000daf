"""Command line of the server. Prints `{"ready": true}` when it listens."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import sys
import threading
from importlib.util import find_spec

from palestra.serve.libraries import parse_spec, version_of
from palestra.serve.library import Json, Options, UsageError
from palestra.serve.pool import Lost, Pool

#: Seconds that running requests get when the server stops.
STOP_S = 3

#: Clients reuse connections that were idle for a minute.
KEEP_ALIVE_S = 75


def arguments_of(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m palestra.serve", description="Serve an environment of a Python library over ORS.")
    parser.add_argument("spec", help="reasoning-gym:NAME, textarena:ID, gem:ID, skyrl-gym:ID, verifiers:ID, verifiers-legacy:MODULE or inspect:TASK")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=8000, help="port to listen on (default: 8000)")
    parser.add_argument("--split-size", type=int, help="tasks of each split (default: of the library, else 1000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first task (default: 0)")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="an argument for the library, as JSON or text")
    parser.add_argument("--data", action="append", default=[], metavar="SPLIT=FILE", help="tasks of a split (skyrl-gym)")
    parser.add_argument("--workers", type=int, default=min(4, os.cpu_count() or 1), help="processes (default: one per core, at most 4)")
    parser.add_argument("--max-sessions", type=int, default=1_000, help="open sessions (default: 1000)")
    parser.add_argument("--deadline", type=float, default=60.0, help="seconds for one call of the library (default: 60)")
    parser.add_argument("--end-with-input", action="store_true", help="end when the standard input ends")
    return parser.parse_args(arguments)


def pairs_of(values: list[str], option: str) -> dict[str, str]:
    pairs = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not name or not equals:
            raise UsageError(f"Expected {option} NAME=VALUE, not {value!r}.")
        pairs[name] = text
    return pairs


def json_or_text(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


def end_with_input() -> None:
    """Ends this process, and with it the workers, when the process that started it ends."""

    def wait() -> None:
        # Not by `sys.stdin`: a thread that waits in it makes the end of the interpreter a fatal error.
        while os.read(0, 1 << 16):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()


def bound(host: str, port: int) -> socket.socket:
    """A socket that is not listening yet. Raises `UsageError` for an address that cannot be used, such as one that another program has."""
    found = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
    except OSError as error:
        found.close()
        raise UsageError(f"Cannot listen on {host}:{port}: {error.strerror}. Choose another address with --host and --port.") from error
    return found


async def serve(given: argparse.Namespace) -> None:
    """Serves until a signal. Raises `UsageError` and `Lost`."""
    for package in ("starlette", "uvicorn"):
        if find_spec(package) is None:
            raise UsageError(f"This Python has no package {package}. Run: pip install 'palestra[serve]'")
    import uvicorn

    from palestra.serve.app import Server, environment_name
    from palestra.serve.sessions import Sessions

    library, identifier = parse_spec(given.spec)
    settings: Json = {name: json_or_text(text) for name, text in pairs_of(given.set, "--set").items()}
    options = Options(identifier, given.split_size, given.seed, settings, pairs_of(given.data, "--data"))
    listener = bound(given.host, given.port)
    pool = Pool(library, options, max(1, given.workers))
    description = await pool.start()
    sessions = Sessions(pool, description, given.max_sessions, given.deadline)
    version = f"{library}-{version_of(library)}"
    app = Server(environment_name(given.spec), version, description, pool, sessions, given.deadline).app()

    config = uvicorn.Config(app, log_level="warning", timeout_keep_alive=KEEP_ALIVE_S, timeout_graceful_shutdown=STOP_S)
    server = uvicorn.Server(config)
    serving = asyncio.ensure_future(server.serve(sockets=[listener]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.02)
    if server.started:
        print(json.dumps({"ready": True}), flush=True)
    await serving


def main(arguments: list[str] | None = None) -> int:
    given = arguments_of(arguments)
    if given.end_with_input:
        end_with_input()
    try:
        asyncio.run(serve(given))
    except (UsageError, Lost) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
