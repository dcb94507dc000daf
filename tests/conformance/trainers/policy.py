"""A scripted policy for the contract tests of trainers: it reads the conversation and generates the next message.

palestra/whodunit: one search, then an accusation: two turns, with the same reward each time. `fragile` of contract.ts: task 0 looks and
finishes (1.25 in two turns), task 1 looks and makes the server vanish.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def next_call(messages: Sequence[dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """Name and arguments of the next call."""
    text = "\n".join(_text(message) for message in messages if message["role"] != "assistant")
    turn = sum(message["role"] == "assistant" for message in messages)
    fragile = re.search(r"Task (\d+): look, then finish", text)
    if fragile:
        return ("look" if turn == 0 else "vanish" if fragile[1] == "1" else "finish"), {}
    rooms = _names("Rooms: (.*)", text)
    if turn == 0:
        return "search", {"room": rooms[0]}
    weapons = _names(r"Weapons in the house: blunt: ([^;\n]+)", text)
    return "accuse", {"suspect": _names("Suspects: (.*)", text)[0], "weapon": weapons[0], "room": rooms[0]}


def reply(messages: Sequence[dict[str, Any]], tools: Any = None) -> dict[str, Any]:
    """An assistant message with a tool call, in OpenAI's format."""
    name, arguments = next_call(messages)
    turn = sum(message["role"] == "assistant" for message in messages)
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": f"call_{turn}", "type": "function", "function": function}
    return {"role": "assistant", "content": f"I {name} now.", "tool_calls": [call]}


def text_reply(messages: Sequence[dict[str, Any]]) -> str:
    """The same call as `<tool_call>` text."""
    name, arguments = next_call(messages)
    return f"I {name} now.\n<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def completion(body: dict[str, Any]) -> dict[str, Any]:
    """A chat completion for the body of a request: with a tool call if it offers tools, else with text."""
    message = reply(body["messages"]) if body.get("tools") else {"role": "assistant", "content": text_reply(body["messages"])}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if body.get("tools") else "stop", "logprobs": None}
    usage = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}
    return {"id": "c", "object": "chat.completion", "created": 0, "model": body["model"], "choices": [choice], "usage": usage}


@contextmanager
def endpoint() -> Iterator[str]:
    """An OpenAI-compatible server on loopback with this policy. Yields its URL, which ends with `/v1`; it accepts any path before that."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer({"object": "list", "data": [{"id": "scripted", "object": "model", "created": 0, "owned_by": "tests"}]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if self.path.endswith("/chat/completions"):
                self._stream(completion(body)) if body.get("stream") else self._answer(completion(body))
            else:
                self._answer({"error": {"message": f"no route {self.path}"}}, 404)

        def _answer(self, value: Any, status: int = 200) -> None:
            text = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def _stream(self, value: dict[str, Any]) -> None:
            """The whole completion as one server-sent event, then the end."""
            message = dict(value["choices"][0]["message"])
            message["tool_calls"] = [{"index": at, **call} for at, call in enumerate(message.get("tool_calls") or [])]
            chunk = {**value, "object": "chat.completion.chunk", "choices": [{**value["choices"][0], "delta": message}]}
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            self.wfile.write(f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode())
            self.close_connection = True

        def log_message(self, *_arguments: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()


def _text(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def _names(pattern: str, text: str) -> list[str]:
    found = re.search(pattern, text)
    if found is None:
        raise ValueError(f"the conversation has no {pattern!r}")
    return found[1].split(", ")
