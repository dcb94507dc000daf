"""Runs Python programs in forks of one interpreter that has imported the official packages before: importing them takes seconds.

usage: fork_server.py SOCKET PACKAGE...

Each line of stdin is a job: {"id", "arguments", "cwd", "env"}. `arguments` are those of `python`: a script, `-c TEXT` or `-m MODULE`, and what
follows. Its stdout and stderr are connections to the Unix socket SOCKET, whose first line is "ID stdout" or "ID stderr". Lines of our stdout: {"ready": true}, {"id", "pid"}, {"id", "code"}; `code` is negative for a signal. At the end of stdin all
forks are killed.
"""

import builtins
import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import sys


def serve(socket_path):
    """Returns a job, in the fork that is to run it; never returns in the server."""
    selector = selectors.DefaultSelector()
    selector.register(0, selectors.EVENT_READ)
    jobs = {}
    pending = b""
    while True:
        for key, _ in selector.select():
            if key.fd != 0:
                job, pid = jobs.pop(key.fd)
                selector.unregister(key.fd)
                os.close(key.fd)
                report({"id": job, "code": os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])})
                continue
            data = os.read(0, 65536)
            if data == b"":
                for _, pid in jobs.values():
                    os.kill(pid, signal.SIGKILL)
                os._exit(0)
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                job = json.loads(line)
                streams = [connect(socket_path, f"{job['id']} {name}\n") for name in ("stdout", "stderr")]
                pid = os.fork()
                if pid == 0:
                    selector.close()
                    for fd in jobs:
                        os.close(fd)
                    for fd, stream in zip((0, 1, 2), (open(os.devnull), *streams)):
                        os.dup2(stream.fileno(), fd)
                        stream.close()
                    return job
                for stream in streams:
                    stream.close()
                fd = os.pidfd_open(pid)
                jobs[fd] = (job["id"], pid)
                selector.register(fd, selectors.EVENT_READ)
                report({"id": job["id"], "pid": pid})


def report(message):
    os.write(1, json.dumps(message).encode() + b"\n")


def connect(socket_path, head):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(socket_path)
    connection.sendall(head.encode())
    return connection


def execute(job):
    """As `python` itself does with these arguments."""
    os.chdir(job["cwd"])
    os.environ.clear()
    os.environ.update(job["env"])
    if os.environ.get("PYTHONUNBUFFERED"):
        sys.stdout.reconfigure(write_through=True)
    first, *rest = job["arguments"]
    folder = os.getcwd() if first == "-m" else "" if first == "-c" else os.path.dirname(os.path.abspath(first))
    sys.path[0:1] = [folder, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    sys.argv[:] = [first, *(rest[1:] if first in ("-c", "-m") else rest)]
    importlib.invalidate_caches()
    if first == "-m":
        runpy._run_module_as_main(rest[0], alter_argv=True)
        return
    if first == "-c":
        code = compile(rest[0], "<string>", "exec")
    else:
        with open(first, encoding="utf8") as source:
            code = compile(source.read(), first, "exec")
    # The program is the main program: its namespace is that of the module __main__, which was ours.
    namespace = globals()
    started = {"__name__": "__main__", "__builtins__": builtins, "__doc__": None, "__package__": None, "__spec__": None, "__loader__": None}
    if first != "-c":
        started["__file__"] = first
    namespace.clear()
    namespace.update(started)
    exec(code, namespace)


def main(socket_path, *packages):
    for package in packages:
        importlib.import_module(package)
    # A collection in a fork would copy every page of what was imported.
    gc.freeze()
    report({"ready": True})
    execute(serve(socket_path))


if __name__ == "__main__":
    main(*sys.argv[1:])
