"""A stand-in for `POST /v1/rollouts` on loopback that fails as a test demands."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class QuietServer(ThreadingHTTPServer):
    """On loopback, in threads. It says nothing of clients that leave."""

    daemon_threads = True

    def __init__(self, handler: type[BaseHTTPRequestHandler], port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_arguments: Any) -> None:
        pass

    def close(self) -> None:
        self.shutdown()
        self.server_close()


class Service:
    """`faults`: one for each request, then none: a status to answer with, `cut` (stored, but the response is lost), `stall` (no response
    until `release`), or a function of the events that returns a response.
    """

    def __init__(self, port: int = 0) -> None:
        self.faults: list[Any] = []
        self.requests: list[list[dict[str, Any]]] = []
        self.stored: dict[str, dict[str, Any]] = {}
        self.release = threading.Event()
        self._lock = threading.Lock()
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                events = json.loads(self.rfile.read(int(self.headers["content-length"])))["events"]
                status, body = service.answer(events)
                if status == 0:
                    self.close_connection = True
                    self.connection.close()
                    return
                text = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_arguments: Any) -> None:
                pass

        self._server = QuietServer(Handler, port)
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def answer(self, events: list[dict[str, Any]]) -> tuple[int, Any]:
        with self._lock:
            self.requests.append(events)
            fault = self.faults.pop(0) if self.faults else None
        if callable(fault):
            call: Callable[[list[dict[str, Any]]], tuple[int, Any]] = fault
            return call(events)
        if fault == "stall":
            self.release.wait(30)
        if isinstance(fault, int):
            return fault, {"code": None, "detail": f"told to answer {fault}"}
        receipt = self.store(events)
        return (0, None) if fault == "cut" else (200, receipt)

    def store(self, events: list[dict[str, Any]]) -> dict[str, Any]:
        with self._lock:
            for event in events:
                # As the service: the first version of an event stays.
                self.stored.setdefault(key_of(event), event)
        return {"accepted": len(events), "duplicates": 0, "conflicts": 0, "rejected": []}

    def messages(self, rollout: str) -> list[dict[str, Any]]:
        """Stored messages of a rollout by index."""
        found = [event for event in self.stored.values() if event.get("rolloutEventId") == rollout]
        return sorted(found, key=lambda event: event["index"])

    def close(self) -> None:
        self.release.set()
        self._server.close()


def key_of(event: dict[str, Any]) -> str:
    # An update has the id of its rollout.
    return f"{event['eventType']}:{event['eventId']}:{json.dumps(event.get('rollout_info'))}"
