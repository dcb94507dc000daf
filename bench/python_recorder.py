"""Times the recorder of the Python package, for python.mjs. Usage: python_recorder.py URL EVENTS ROUNDS. Prints JSON."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
import uuid
from pathlib import Path

import httpx

sys.path.insert(0, str(Path(__file__).parents[1] / "integrations/python/src"))

from palestra.record import Recorder  # noqa: E402
from palestra.upload import MAX_BATCH_EVENTS  # noqa: E402

CONTENT = "x" * 1_000
# Nothing listens here.
DEAD = "http://127.0.0.1:9"
MESSAGES_PER_ROLLOUT = 100


def record(url: str, events: int, folder: str) -> tuple[float, float]:
    """Returns the seconds until the service has all events, and the longest one that a method took."""
    records = Recorder("bench", url=url, api_key="or_bench", spool_dir=folder)
    longest = 0.0
    started = time.perf_counter()
    for number in range(events):
        if number % MESSAGES_PER_ROLLOUT == 0:
            rollout = records.rollout(environment="bench/bench", step=number)
        before = time.perf_counter()
        rollout.log("user_message", CONTENT)
        longest = max(longest, time.perf_counter() - before)
    report = records.close(600 if url != DEAD else 0.1)
    if report.refused or (url != DEAD and not report.complete):
        raise SystemExit(f"not all events arrived: {report}")
    return time.perf_counter() - started, longest


def post(url: str, events: int) -> float:
    """Returns the seconds that a loop without a spool takes for as many events, batch after batch over one connection."""
    rollout = str(uuid.uuid4())
    started = time.perf_counter()
    with httpx.Client(headers={"content-type": "application/json", "x-api-key": "or_bench"}) as http:
        for first in range(0, events, MAX_BATCH_EVENTS):
            batch = [
                {
                    "eventType": "message",
                    "eventId": str(uuid.uuid4()),
                    "rolloutEventId": rollout,
                    "timestamp": int(time.time() * 1000),
                    "type": "user_message",
                    "index": number,
                    "content": CONTENT,
                    "isFinished": False,
                    "metadata": {},
                }
                for number in range(first, min(first + MAX_BATCH_EVENTS, events))
            ]
            http.post(f"{url}/v1/rollouts", content=json.dumps({"events": batch}).encode()).raise_for_status()
    return time.perf_counter() - started


def main(url: str, events: int, rounds: int) -> None:
    figures: dict[str, list[float]] = {"recorder": [], "loop": [], "longest": [], "down": []}
    for _ in range(rounds):
        folder = tempfile.mkdtemp(prefix="palestra-bench-")
        try:
            seconds, longest = record(url, events, folder)
            figures["recorder"].append(events / seconds)
            figures["longest"].append(longest)
            figures["loop"].append(events / post(url, events))
            figures["down"].append(record(DEAD, events, folder)[1])
        finally:
            shutil.rmtree(folder)
    print(json.dumps(figures))


main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
