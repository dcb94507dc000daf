"""Sessions over a server that fails as a test demands."""

from __future__ import annotations

import asyncio
import base64
import json
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from service import QuietServer

from palestra import Client, EnvironmentFailure, Failure, InfrastructureFailure, OpenAIChat, PolicyFailure, iter_tasks, play, transport
from palestra.settings import settings
from palestra.transport import events_of

TOOLS = {"tools": [{"name": "add", "description": "", "input_schema": None}], "terminal_tool": None}
OUTPUT = {"blocks": [{"type": "text", "text": "3"}], "reward": 1.0, "finished": False, "metadata": None}


class Ors:
    """`plan`: what happens to the next requests of a path: a status, `cut`, `half` (the task id and then nothing), `stall`, a dict of SSE
    events (`queue` alone stalls), or a (status, body, headers) to answer with.
    """

    def __init__(self) -> None:
        self.plan: dict[str, list[Any]] = {}
        self.seen: list[tuple[str, dict[str, str], Any]] = []
        self.release = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_request(self) -> None:
                length = int(self.headers.get("content-length") or 0)
                body = json.loads(self.rfile.read(length) or b"null")
                path = self.path.split("?")[0]
                server.seen.append((path, {name.lower(): value for name, value in self.headers.items()}, body))
                planned = server.plan.get(path, [])
                self.serve(path.removeprefix("/mathenv"), planned.pop(0) if planned else None)

            do_GET = do_POST = handle_request

            def serve(self, path: str, fault: Any) -> None:
                if isinstance(fault, int):
                    return self.reply(fault, b"<html>", "text/html")
                if isinstance(fault, tuple):
                    status, body, headers = fault
                    return self.reply(status, json.dumps(body).encode(), "application/json", headers)
                if fault == "stall":
                    server.release.wait(20)
                if fault in ("cut", "stall"):
                    return self.leave()
                if path in ("/create_session", "/call"):
                    return self.events(path, fault)
                answers: dict[str, Any] = {
                    "/create": {"sid": "s-1"},
                    "/messages": [{"role": "user", "blocks": [{"type": "text", "text": "2+1?"}]}],
                    "/prompt": [{"type": "text", "text": "2+1?"}],
                    "/task_tools": TOOLS,
                    "/v1/chat/completions": {"choices": [{"message": {"role": "assistant", "content": "3"}}]},
                }
                self.reply(200, json.dumps(answers.get(path, {"status": "ok"})).encode(), "application/json")

            def events(self, path: str, fault: Any) -> None:
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                self.close_connection = True
                self.say("task_id", "s-1" if path == "/create_session" else "t-1")
                if fault == "half":
                    return self.leave()
                if isinstance(fault, dict):
                    for event, data in fault.items():
                        self.say(event, data)
                    if list(fault) == ["queue"]:
                        server.release.wait(20)
                    return None
                if path == "/create_session":
                    return self.say("end", "")
                text = json.dumps({"ok": True, "output": OUTPUT})
                self.say("chunk", text[:20])
                self.say("end", text[20:])

            def say(self, event: str, data: str) -> None:
                self.wfile.write(f": ping\r\n\r\nevent: {event}\r\ndata: {data}\r\n\r\n".encode())

            def leave(self) -> None:
                self.close_connection = True
                self.connection.close()

            def reply(self, status: int, body: bytes, kind: str, headers: dict[str, str] | None = None) -> None:
                self.send_response(status)
                for name, value in {"content-type": kind, "content-length": str(len(body)), **(headers or {})}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_arguments: Any) -> None:
                pass

        self._server = QuietServer(Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def of(self, path: str) -> list[tuple[dict[str, str], Any]]:
        return [(headers, body) for seen, headers, body in self.seen if seen == path]

    def close(self) -> None:
        self.release.set()
        self._server.close()


@pytest.fixture
def ors() -> Iterator[Ors]:
    server = Ors()
    yield server
    server.close()


@pytest.fixture
async def client(ors: Ors, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Client]:
    monkeypatch.setattr(transport, "_FIRST_WAIT_S", 0.01)
    monkeypatch.setattr(transport, "_LONGEST_WAIT_S", 0.02)
    async with Client(ors.url, "or_key", retry_for_s=20) as connection:
        yield connection


def session_of(client: Client, **options: Any) -> Any:
    return client.session("a/b", split="train", index=3, **{"ping_s": 0, **options})


async def test_a_session_from_its_start_to_its_end(client: Client, ors: Ors) -> None:
    async with session_of(client, secrets={"token": "x"}, variant="v") as session:
        assert session.sid == "s-1"
    paths = [path for path, _, _ in ors.seen]
    assert paths == ["/create_session", "/create", "/delete", "/delete_session"]
    headers, body = ors.of("/create")[0]
    assert body == {"split": "train", "index": 3, "env_name": "v"}
    assert (headers["x-session-id"], headers["x-deployment"], headers["x-api-key"]) == ("s-1", "a/b", "or_key")
    assert json.loads(base64.b64decode(headers["x-secrets"])) == {"token": {"value": "x"}}


async def test_numbers_of_numpy(client: Client, ors: Ors) -> None:
    async with client.session("a/b", split="train", index=np.int64(3), ping_s=0) as session:
        await session.call("add", {"a": np.float32(0.5), "b": [np.int64(1)]})
    assert ors.of("/create")[0][1]["index"] == 3
    assert ors.of("/call")[0][1]["input"] == {"a": 0.5, "b": [1]}
    with pytest.raises(TypeError, match="ndarray is not a JSON value"):
        async with client.session("a/b", task_spec={"words": np.arange(2)}, ping_s=0):
            pass


async def test_calls(client: Client, ors: Ors) -> None:
    async with session_of(client) as session:
        assert [tool.name for tool in await session.tools()] == ["add"]
        output = await session.call("add", {"a": 1})
    assert (output.text, output.reward, output.finished) == ("3", 1.0, False)
    assert ors.of("/call")[0][1] == {"name": "add", "input": {"a": 1}}


async def test_a_redirect_to_the_first_environment_of_another_server(client: Client, ors: Ors) -> None:
    for path in ("/prompt", "/call"):
        ors.plan[path] = [(308, None, {"location": f"/mathenv{path}"})]
    async with session_of(client) as session:
        assert await session.prompt() == [{"type": "text", "text": "2+1?"}]
        assert (await session.call("add", {"a": 1})).text == "3"
    assert ors.of("/mathenv/call")[0][1] == {"name": "add", "input": {"a": 1}}
    assert ors.of("/mathenv/prompt")[0][0]["x-session-id"] == "s-1"


async def test_no_other_server_gets_the_key(client: Client, ors: Ors) -> None:
    other = Ors()
    ors.plan["/prompt"] = [(308, None, {"location": f"{other.url}/prompt"})]
    async with session_of(client) as session:
        with pytest.raises(Failure, match="^http_308"):
            await session.prompt()
    other.close()
    assert other.seen == []


@pytest.mark.parametrize("faults", [[503, 502, 429, 504], ["cut", "cut"], [(429, {"code": "capacity_exhausted"}, {"retry-after": "0"})]])
async def test_a_call_before_its_id_is_known_has_one_name(client: Client, ors: Ors, faults: list[Any]) -> None:
    ors.plan["/call"] = list(faults)
    async with session_of(client) as session:
        assert (await session.call("add")).text == "3"
        await session.call("add")
    names = [headers["idempotency-key"] for headers, _ in ors.of("/call")]
    assert len(names) == len(faults) + 2
    # The repeats have the name of the first attempt, the next call another.
    assert len(set(names)) == 2 and names[-1] != names[0]


async def test_a_cut_stream_is_resumed_by_its_task_id(client: Client, ors: Ors) -> None:
    ors.plan["/call"] = ["half", "half"]
    async with session_of(client) as session:
        assert (await session.call("add")).text == "3"
    bodies = [body.get("task_id") for _, body in ors.of("/call")]
    assert bodies == [None, "t-1", "t-1"]


async def test_a_stalled_response_is_given_up(client: Client, ors: Ors, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "STALL_S", 1.0)
    ors.plan["/call"] = ["stall"]
    async with session_of(client) as session:
        assert (await session.call("add")).text == "3"
    assert len(ors.of("/call")) == 2


@pytest.mark.parametrize(
    ("event", "kind", "code"),
    [
        ({"error": "the lamp fell"}, EnvironmentFailure, "tool_failed"),
        ({"failure": json.dumps({"code": None, "status": 500, "detail": "x"})}, EnvironmentFailure, "tool_failed"),
        ({"failure": json.dumps({"code": "session_lost", "status": 410, "detail": "x"})}, InfrastructureFailure, "session_lost"),
        ({"end": json.dumps({"ok": False, "error": "'x' is not a valid tool"})}, PolicyFailure, "not_found"),
        ({"end": json.dumps({"ok": False, "error": "no", "reason": "episode_finished"})}, PolicyFailure, "episode_finished"),
    ],
)
async def test_outcomes_that_are_failures(client: Client, ors: Ors, event: Any, kind: type[Failure], code: str) -> None:
    ors.plan["/call"] = [event]
    async with session_of(client) as session:
        with pytest.raises(kind) as raised:
            await session.call("x")
        assert raised.value.code == code
        if kind is PolicyFailure:
            assert (await session.call("add")).text == "3"
        else:
            # The session has ended: a call fails without a request.
            with pytest.raises(InfrastructureFailure):
                await session.call("add")
            assert len(ors.of("/call")) == 1


async def test_an_opening_whose_response_was_lost(client: Client, ors: Ors) -> None:
    ors.plan["/create"] = ["cut", (400, {"code": "session_exists", "detail": "Session already exists"}, {})]
    async with session_of(client) as session:
        assert (await session.call("add")).text == "3"


async def test_an_id_that_another_client_opened(client: Client, ors: Ors) -> None:
    ors.plan["/create"] = [(400, {"code": "session_exists", "detail": "Session already exists"}, {})]
    with pytest.raises(InfrastructureFailure, match="session_exists"):
        await session_of(client).open()
    # The reservation is given back.
    assert [path for path, _, _ in ors.seen][-2:] == ["/delete", "/delete_session"]


async def test_refusals_are_not_repeated(client: Client, ors: Ors) -> None:
    ors.plan["/create_session"] = [(401, {"code": "key_revoked", "detail": "revoked"}, {})]
    with pytest.raises(InfrastructureFailure) as raised:
        await session_of(client).open()
    assert (raised.value.code, raised.value.status, len(ors.seen)) == ("key_revoked", 401, 1)


def place(position: int) -> str:
    return json.dumps({"position": position, "waiting": 3, "estimated_wait_s": None})


async def test_a_slot_is_waited_for(client: Client, ors: Ors) -> None:
    ors.plan["/create_session"] = [{"queue": place(2), "end": ""}]
    async with session_of(client) as session:
        assert session.queue_position is None
    assert ors.of("/create_session")[0][0]["x-palestra-queue"] == "1"


async def test_a_full_queue_is_repeated_with_the_id_of_the_session(client: Client, ors: Ors) -> None:
    full = {"failure": json.dumps({"code": "capacity_exhausted", "status": 429, "detail": "this API key may have 1 sessions open"})}
    ors.plan["/create_session"] = [full, full]
    async with session_of(client) as session:
        assert session.sid == "s-1"
    assert [body.get("task_id") for _, body in ors.of("/create_session")] == [None, "s-1", "s-1"]
    ors.plan["/create_session"] = [full]
    async with Client(ors.url, retry_for_s=0) as impatient:
        with pytest.raises(InfrastructureFailure, match="this API key may have 1 sessions open") as raised:
            await session_of(impatient).open()
    assert (raised.value.code, raised.value.status) == ("capacity_exhausted", 429)


async def test_an_episode_that_waits_for_a_slot_until_its_end_says_so(client: Client, ors: Ors) -> None:
    ors.plan["/create_session"] = [{"queue": place(3)}]
    episode = await play(session_of(client), lambda _messages, _tools: "", timeout_s=2)
    assert episode.failure is not None
    assert (episode.stop, episode.failure.code, episode.failure.failure_class) == ("infra_error", "capacity_exhausted", "infrastructure")
    assert "within the 2 s of the episode, which was number 3 in the queue" in episode.failure.detail
    # The reservation is given back.
    assert [path for path, _, _ in ors.seen][-2:] == ["/delete", "/delete_session"]


async def test_an_environment_that_starts_is_waited_for(ors: Ors, client: Client) -> None:
    starting = (503, {"code": "environment_starting", "detail": "starting"}, {"x-backend-state": "starting", "retry-after": "0"})
    ors.plan["/create"] = [starting] * 3
    async with Client(ors.url, retry_for_s=0) as impatient:
        async with session_of(impatient) as session:
            assert session.sid == "s-1"


async def test_a_service_that_stays_away(ors: Ors) -> None:
    ors.plan["/create_session"] = [503] * 1000
    async with Client(ors.url, retry_for_s=0) as client:
        with pytest.raises(InfrastructureFailure) as raised:
            await session_of(client).open()
    assert raised.value.retryable and len(ors.seen) == 1


async def test_an_old_server_without_messages(client: Client, ors: Ors) -> None:
    ors.plan["/messages"] = [404]
    async with session_of(client) as session:
        assert await session.messages() == [{"role": "user", "blocks": [{"type": "text", "text": "2+1?"}]}]


async def test_pings(client: Client, ors: Ors) -> None:
    async with session_of(client, ping_s=0.02):
        while len(ors.of("/ping")) < 3:
            await asyncio.sleep(0.01)
    # The server may still have to read the last ping.
    await asyncio.sleep(1)
    seen = len(ors.of("/ping"))
    await asyncio.sleep(0.1)
    assert len(ors.of("/ping")) == seen


async def test_an_episode_over_http(client: Client, ors: Ors) -> None:
    chat = OpenAIChat(f"{ors.url}/v1", "m", api_key="sk", temperature=0.5, retry_for_s=5)
    ors.plan["/v1/chat/completions"] = [503, "cut"]
    episode = await play(session_of(client), chat)
    await chat.close()
    assert (episode.stop, episode.turns[0].reply.text) == ("no_tool_call", "3")
    headers, body = ors.of("/v1/chat/completions")[-1]
    assert headers["authorization"] == "Bearer sk"
    assert (body["model"], body["temperature"], body["tools"][0]["function"]["name"]) == ("m", 0.5, "add")


async def test_a_model_that_is_down_or_full(client: Client, ors: Ors) -> None:
    chat = OpenAIChat(f"{ors.url}/v1", "m", retry_for_s=0)
    ors.plan["/v1/chat/completions"] = [500, (400, {"detail": "This model's maximum context length is 9 tokens"}, {})]
    down = await play(session_of(client), chat)
    assert (down.stop, down.failure and down.failure.code) == ("infra_error", "chat_failed")
    full = await play(session_of(client), chat)
    assert (full.stop, full.failure) == ("context_length", None)
    await chat.close()


def test_an_address_of_a_model_has_a_scheme() -> None:
    with pytest.raises(ValueError, match="'localhost:8001/v1' is no address of a model. Expected http://host:port/v1"):
        OpenAIChat("localhost:8001/v1", "m")


async def test_events_end_at_line_feeds_only() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for piece in (b'event: chunk\r\nda', 'ta: "a\u2028b\x85"'.encode(), b"\r\n\r\nevent:end\ndata:", b" x\ndata: y\n\n", b"event: cut"):
            yield piece

    assert [event async for event in events_of(chunks())] == [("chunk", '"a\u2028b\x85"'), ("end", "x\ny")]


def test_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    # Where `palestra up` listens.
    assert settings().url == "http://127.0.0.1:8080"
    assert settings("http://a:1/").url == "http://a:1"
    monkeypatch.setenv("OPENREWARD_URL", "https://web")
    monkeypatch.setenv("OPENREWARD_API_URL", "https://api")
    monkeypatch.setenv("OPENREWARD_SESSION_URL", "https://sessions")
    assert (settings().url, settings().session_url) == ("https://api", "https://sessions")
    assert settings("http://a:1").session_url == "http://a:1"
    with pytest.raises(ValueError, match="'localhost' is no address"):
        settings("localhost")


def test_a_session_needs_one_task() -> None:
    client = Client("http://127.0.0.1:9")
    with pytest.raises(ValueError, match="either split and index, or task_spec"):
        client.session("a/b", split="train")
    with pytest.raises(ValueError, match="Expected owner/name"):
        next(iter_tasks("math", client=client))


def test_a_session_of_a_named_host_ends_with_the_process(ors: Ors) -> None:
    """Without a connection from before, as after a long generation."""
    program = (
        "import sys\nfrom palestra import Client, Steps, background\n"
        "client = Client(sys.argv[1])\n"
        "steps = Steps(client.session('a/b', split='train', index=0, ping_s=0))\n"
        "steps.open_sync()\nbackground.worker.run(client.close())\nraise SystemExit(3)\n"
    )
    url = ors.url.replace("127.0.0.1", "localhost")
    ended = subprocess.run([sys.executable, "-c", program, url], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (3, "")
    assert len(ors.of("/delete")) == 1


def test_an_interrupt_ends_the_session(ors: Ors) -> None:
    program = (
        "import sys, time\nfrom palestra import Client, play_sync\n"
        "def chat(messages, tools):\n    print('playing', flush=True)\n    time.sleep(60)\n"
        "play_sync(Client(sys.argv[1]).session('a/b', split='train', index=0, ping_s=0), chat)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", program, ors.url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "playing\n"
    child.send_signal(signal.SIGINT)
    _, told = child.communicate(timeout=60)
    assert "KeyboardInterrupt" in told
    assert len(ors.of("/delete")) == 1


async def test_variables_without_a_usable_proxy_are_named(ors: Ors, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "localhost,[::1]")
    episode = await play(Client(ors.url).session("a/b", split="train", index=0), lambda _messages, _tools: "3")
    assert isinstance(episode.failure, InfrastructureFailure)
    assert "Invalid port" in str(episode.failure) and "NO_PROXY" in str(episode.failure)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_session_ends_with_a_process_of_multiprocessing(ors: Ors, method: str, tmp_path: Path) -> None:
    program = (
        "import multiprocessing, sys\nfrom palestra import Client, Steps\n"
        "def work(url):\n    global steps\n"
        "    steps = Steps(Client(url).session('a/b', split='train', index=0, ping_s=0))\n    steps.open_sync()\n"
        "if __name__ == '__main__':\n"
        "    child = multiprocessing.get_context(sys.argv[2]).Process(target=work, args=(sys.argv[1],))\n"
        "    child.start()\n    child.join()\n    sys.exit(child.exitcode)\n"
    )
    file = tmp_path / "program.py"
    file.write_text(program)
    ended = subprocess.run([sys.executable, str(file), ors.url, method], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert len(ors.of("/delete")) == 1
