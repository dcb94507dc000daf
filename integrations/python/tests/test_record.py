"""The recorder: nothing lost, nothing twice, and no call that waits for the network."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from service import Service

from palestra import Reply, command, read_tokens, spool, upload
from palestra.failures import unreachable
from palestra.record import Recorder, Rollout
from palestra.sidecar import TokenRecord, TokenSidecar
from palestra.spool import Segment
from palestra.tasks import TaskRef

DEAD = "http://127.0.0.1:9"


def recorder(url: str, folder: Path, **options: Any) -> Recorder:
    return Recorder("run", url=url, api_key="or_test", spool_dir=folder / "spool", **options)


def fill(rollout: Rollout, count: int = 3) -> None:
    for number in range(count):
        rollout.log("user_message", f"message {number}")


def spooled(folder: Path) -> list[Path]:
    return sorted((folder / "spool").glob("*.spool"))


def test_what_is_sent(service: Service, tmp_path: Path) -> None:
    ref = TaskRef("palestra", "math", "train", 7, "abc", 3)
    with recorder(service.url, tmp_path, run_info={"model_name": "m"}) as records:
        rollout = records.rollout(ref, step=4, group="g", sample=1, samples=8, phase="train", policy_version=12, metadata={"mine": [1]})
        rollout.begin("sid", [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}])
        rollout.message({"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": {"name": "t", "arguments": ""}}]})
        rollout.message({"role": "tool", "tool_call_id": "c", "content": "r"}, reward=1.0, finished=True)
        rollout.finish("finished", total=1.0, num_turns=1)
    start = next(event for event in service.stored.values() if event["eventType"] == "rollout")
    assert start["eventId"] == rollout.id
    assert {key: start[key] for key in ("runName", "environment", "split", "step")} == {
        "runName": "run",
        "environment": "palestra/math",
        "split": "train",
        "step": 4,
    }
    assert start["run_info"] == {"model_name": "m", "run_type": "train"}
    assert start["rollout_info"] == {"task_index": 7, "current_step": 4}
    assert start["metadata"] == {
        "group_id": "g",
        "sample_idx": 1,
        "n_samples": 8,
        "phase": "train",
        "policy_step": 12,
        "session_id": "sid",
        "task_key": "abc",
        "env_version": 3,
        "mine": [1],
    }
    sent = [(one["index"], one["type"], one.get("content"), one.get("reward"), one["isFinished"]) for one in service.messages(rollout.id)]
    assert sent == [
        (0, "system_message", "s", None, False),
        (1, "user_message", "u", None, False),
        (2, "tool_call", "{}", None, False),
        (3, "tool_result", "r", 1.0, True),
    ]
    update = next(event for event in service.stored.values() if event["eventType"] == "rollout_update")
    assert update["rollout_info"] == {"task_index": 7, "stop_reason": "finished", "reward_total": 1.0, "num_turns": 1}
    # Nothing is left on disk.
    assert spooled(tmp_path) == []


def test_a_reward_of_a_reply_that_only_calls_is_kept(service: Service, tmp_path: Path) -> None:
    calls = [{"id": one, "function": {"name": "t", "arguments": "{}"}} for one in "ab"]
    with recorder(service.url, tmp_path) as records:
        rollout = records.rollout(environment="a/b")
        rollout.message({"role": "assistant", "content": None, "tool_calls": calls}, reward=0.5, finished=True)
        rollout.message({"role": "assistant", "content": "text", "tool_calls": calls[:1]}, reward=1.0)
    sent = [(one["type"], one.get("reward"), one["isFinished"]) for one in service.messages(rollout.id)]
    assert sent == [
        ("tool_call", None, False),
        ("tool_call", 0.5, True),
        ("assistant_message", 1.0, False),
        ("tool_call", None, False),
    ]


@pytest.mark.parametrize("place", [{"step": "1"}, {"step": 1.5}, {"sample": True}, {"samples": float("nan")}, {"step": np.float32(0.5)}])
def test_a_place_that_the_service_would_not_know_is_refused(tmp_path: Path, place: dict[str, Any]) -> None:
    with recorder(DEAD, tmp_path) as records:
        with pytest.raises(ValueError, match=f"^{next(iter(place))} must be a whole number, not "):
            records.rollout(environment="a/b", **place)
        records.rollout(environment="a/b", step=np.int64(1), sample=2.0, samples=np.float32(4))


def test_a_failure_makes_the_rollout_unscored(service: Service, tmp_path: Path) -> None:
    with recorder(service.url, tmp_path) as records:
        records.rollout(environment="a/b").finish("infra_error", failure=unreachable("refused"))
    update = next(event for event in service.stored.values() if event["eventType"] == "rollout_update")
    assert update["rollout_info"] == {
        "stop_reason": "infra_error",
        "failure_class": "infrastructure",
        "failure_kind": "unreachable",
        "error": "refused",
    }


@pytest.mark.parametrize("faults", [[503] * 6, [502, 429, 504, 500], ["cut", "cut"], [401, 401], [404]])
def test_every_transient_fault(service: Service, tmp_path: Path, faults: list[Any]) -> None:
    service.faults = list(faults)
    records = recorder(service.url, tmp_path)
    rollout = records.rollout(environment="a/b")
    fill(rollout, 300)
    report = records.close(20)
    assert report.complete and report.stored == report.recorded == 301
    assert [one["content"] for one in service.messages(rollout.id)] == [f"message {number}" for number in range(300)]
    assert service.faults == []
    # The repeats had the same ids, and no batch was larger than the service accepts.
    assert len(service.stored) == 301
    assert max(map(len, service.requests)) <= 128


def test_a_service_that_is_down_and_comes_back(tmp_path: Path) -> None:
    first = Service()
    first.close()
    records = recorder(first.url, tmp_path)
    rollout = records.rollout(environment="a/b")
    fill(rollout, 10)
    while (report := records.flush(0.01)).error is None:
        pass
    assert (report.recorded, report.stored, report.spilled, report.complete) == (11, 0, 11, False)
    assert report.error.code == "unreachable"
    assert f"0 of 11 events are stored; 11 wait in {tmp_path / 'spool'}." in str(report)
    second = Service(first.port)
    try:
        report = records.close(20)
        assert report.complete and report.error is None
        assert [one["index"] for one in second.messages(rollout.id)] == list(range(10))
    finally:
        second.close()


def test_the_next_process_uploads_what_is_left(service: Service, tmp_path: Path) -> None:
    records = recorder(DEAD, tmp_path)
    rollout = records.rollout(environment="a/b")
    fill(rollout, 5)
    assert records.close(0.05).spilled == 6
    assert len(spooled(tmp_path)) == 1
    # Another key may be that of another organisation.
    other = Recorder("run", url=service.url, api_key="or_other", spool_dir=tmp_path / "spool")
    assert other.close(0.2).recorded == 0
    report = recorder(service.url, tmp_path).close(20)
    assert (report.recorded, report.stored, report.spilled, report.damaged) == (6, 6, 0, 0)
    assert len(service.messages(rollout.id)) == 5 and spooled(tmp_path) == []


KILLED = """
import os, signal
from palestra import Recorder
records = Recorder("run", url="http://127.0.0.1:9", api_key="or_test", spool_dir={spool!r})
rollout = records.rollout(environment="a/b")
for number in range(400):
    rollout.log("user_message", f"message {{number}}")
print(rollout.id, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_kill_9_of_the_trainer_loses_nothing(service: Service, tmp_path: Path) -> None:
    script = KILLED.format(spool=str(tmp_path / "spool"))
    killed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert len(spooled(tmp_path)) == 1
    report = recorder(service.url, tmp_path).close(20)
    assert (report.stored, report.complete) == (401, True)
    assert [one["index"] for one in service.messages(killed.stdout.strip())] == list(range(400))


def test_a_torn_and_a_damaged_line_are_left_out(service: Service, tmp_path: Path) -> None:
    records = recorder(DEAD, tmp_path)
    rollout = records.rollout(environment="a/b")
    fill(rollout, 4)
    records.close(0.05)
    (file,) = spooled(tmp_path)
    lines = file.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b"message 1", b"message X")
    file.write_bytes(b"".join(lines)[:-10])
    report = recorder(service.url, tmp_path).close(20)
    assert (report.recorded, report.stored, report.damaged, report.spilled) == (5, 3, 2, 0)
    assert [one["index"] for one in service.messages(rollout.id)] == [0, 2]


def test_two_processes_do_not_share_a_file(service: Service, tmp_path: Path) -> None:
    living = recorder(DEAD, tmp_path)
    fill(living.rollout(environment="a/b"))
    assert recorder(service.url, tmp_path).close(1).recorded == 0
    assert living.close(0.05).spilled == 4


def test_no_process_finds_a_file_before_it_is_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Any] = []
    lock = spool._lock
    monkeypatch.setattr(spool, "_lock", lambda fd: found.append(list(tmp_path.glob("*.spool"))) or lock(fd))
    segment = Segment.create(tmp_path, "me")
    assert found == [[]] and list(tmp_path.iterdir()) == [segment.path]
    segment.close(delete=False)
    # An empty file of an ended process is removed.
    assert spool.orphans(tmp_path, "me") == [] and list(tmp_path.iterdir()) == []


def test_no_method_but_flush_and_close_touches_the_network(service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The trainer's thread opens no socket and waits for no thread that does: the service answers nothing at all."""
    service.faults = ["stall"] * 10_000
    users: set[str] = set()
    connect = socket.socket.connect

    def watched(self: socket.socket, address: Any) -> Any:
        users.add(threading.current_thread().name)
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", watched)
    records = recorder(service.url, tmp_path)
    before = threading.current_thread().name
    for number in range(20):
        rollout = records.rollout(environment="a/b", step=number)
        fill(rollout, 200)
        rollout.finish("finished")
    # Every sender hangs in a request, and still everything is recorded, on disk.
    while len(users) < upload.SENDERS:
        time.sleep(0.01)
    report = records.report()
    assert (report.recorded, report.stored, report.spilled) == (4040, 0, 4040)
    assert before not in users and all(name.startswith("palestra-upload-") for name in users)
    assert sum(file.stat().st_size for file in spooled(tmp_path)) == report.spilled_bytes
    # The methods wait for nothing but the lock, which the senders hold for work on local files only.
    service.release.set()
    service.faults = []
    assert records.close(30).complete


def test_memory_holds_no_more_than_the_batches(tmp_path: Path) -> None:
    """What waits is in files; a sender holds one batch."""
    records = recorder(DEAD, tmp_path)
    rollout = records.rollout(environment="a/b")
    for _ in range(60):
        rollout.log("user_message", "x" * 100_000)
    while not (held := [batch for batch in records._uploader._batches if not batch.done]):
        time.sleep(0.01)
    assert len(held) <= upload.SENDERS
    assert all(sum(map(len, batch.events)) <= upload.MAX_BATCH_BYTES for batch in held)
    assert records.close(0.05).spilled_bytes > 6_000_000


def test_an_event_larger_than_a_batch_goes_alone(service: Service, tmp_path: Path) -> None:
    with recorder(service.url, tmp_path) as records:
        rollout = records.rollout(environment="a/b")
        rollout.log("user_message", "y" * 3_000_000)
        fill(rollout, 1)
    assert [len(one["content"]) for one in service.messages(rollout.id)] == [3_000_000, 9]


def test_refused_events_are_kept_with_the_reason(service: Service, tmp_path: Path) -> None:
    def picky(events: list[dict[str, Any]]) -> tuple[int, Any]:
        refused = any(one.get("content") == "message 1" for one in events)
        return (422, {"detail": "no ones"}) if refused else (200, service.store(events))

    service.faults = [picky] * 40
    with recorder(service.url, tmp_path) as records:
        rollout = records.rollout(environment="a/b")
        fill(rollout, 6)
    report = records.report()
    assert (report.recorded, report.stored, report.rejected, report.spilled, report.complete) == (7, 6, 1, 0, False)
    kept = json.loads((tmp_path / "spool/rejected.jsonl").read_text())
    assert (kept["detail"], kept["event"]["content"]) == ("no ones", "message 1")


def reject_all(service: Service) -> None:
    service.faults = [lambda events: (200, {"rejected": [{"position": at, "detail": "odd"} for at in range(len(events))]})] * 100


def test_files_of_the_spool_are_of_this_user_alone(service: Service, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        (tmp_path / "spool").mkdir(0o755)
        (tmp_path / "spool/rejected.jsonl").touch(0o644)
        reject_all(service)
        records = recorder(service.url, tmp_path)
        fill(records.rollout(environment="a/b"))
        assert records.flush(20).rejected == 4
        new = recorder(DEAD, tmp_path / "new")
        fill(new.rollout(environment="a/b"))
        new.close(0.05)
    finally:
        os.umask(before)
    modes = {file.name.split(".")[-1]: file.stat().st_mode & 0o777 for file in (tmp_path / "spool").iterdir()}
    assert modes == {"jsonl": 0o600, "spool": 0o600}
    assert (tmp_path / "new/spool").stat().st_mode & 0o777 == 0o700
    records.close()


@pytest.mark.parametrize("obstacle", ["full", "link", "hard link", "pipe"])
def test_a_rejected_event_waits_until_it_can_be_kept(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, obstacle: str
) -> None:
    (tmp_path / "spool").mkdir(0o700)
    rejected, victim = tmp_path / "spool/rejected.jsonl", tmp_path / "victim"
    victim.write_text("mine")
    if obstacle == "full":
        monkeypatch.setattr(upload, "MAX_REJECTED_BYTES", 10)
    elif obstacle == "link":
        rejected.symlink_to(victim)
    elif obstacle == "hard link":
        rejected.hardlink_to(victim)
    else:
        os.mkfifo(rejected)
    reject_all(service)
    records = recorder(service.url, tmp_path)
    fill(records.rollout(environment="a/b"), 1)
    while (report := records.flush(0.01)).error is None:
        pass
    assert (report.error.code, report.rejected, report.spilled) == ("rejected_not_kept", 0, 2)
    assert "rejected.jsonl" in str(report) and "move it elsewhere" in str(report)
    # Nor does the next process lose it.
    assert records.close(0.01).spilled == 2
    assert victim.read_text() == "mine"
    rejected.unlink(missing_ok=True)
    monkeypatch.undo()
    reject_all(service)
    report = recorder(service.url, tmp_path).close(20)
    assert (report.rejected, report.spilled) == (2, 0)
    assert [json.loads(line)["detail"] for line in rejected.read_text().splitlines()] == ["odd", "odd"]


@pytest.mark.parametrize("kind", ["link", "hard link", "pipe", "of another user"])
def test_only_files_of_this_user_are_adopted(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    records = recorder(DEAD, tmp_path)
    fill(records.rollout(environment="a/b"), 1)
    records.close(0.05)
    (file,) = spooled(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    if kind == "link":
        file.rename(elsewhere)
        file.symlink_to(elsewhere)
    elif kind == "hard link":
        elsewhere.hardlink_to(file)
    elif kind == "pipe":
        file.unlink()
        os.mkfifo(file)
    else:
        owner = os.geteuid()
        monkeypatch.setattr(spool, "prepare_directory", lambda directory: None)
        monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert Segment.adopt(file) is None
    assert "events of an ended process are not uploaded" in caplog.text and str(file) in caplog.text
    assert recorder(service.url, tmp_path).close(0.2).recorded == 0
    assert file.lstat()


def test_a_directory_of_others_is_no_spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool").chmod(0o775)
    with pytest.raises(OSError, match="chmod 700"):
        recorder(DEAD, tmp_path)
    (tmp_path / "spool").chmod(0o700)
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.raises(OSError, match=f"belongs to user {owner}"):
        recorder(DEAD, tmp_path)


def test_a_receipt_that_rejects_one_event(service: Service, tmp_path: Path) -> None:
    odd: list[Any] = ["a text", {"rejected": [{}]}, {"rejected": 7}]
    service.faults = [lambda _events, body=body: (200, body) for body in odd]
    service.faults.append(lambda events: (200, {"accepted": len(events) - 1, "rejected": [{"position": 0, "detail": "odd"}]}))
    with recorder(service.url, tmp_path) as records:
        fill(records.rollout(environment="a/b"), 1)
    assert (records.report().stored, records.report().rejected) == (1, 1)


def test_a_full_spool_refuses_and_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    records = recorder(DEAD, tmp_path, max_spool_bytes=2_000)
    fill(records.rollout(environment="a/b"), 50)
    report = records.close(0.05)
    assert report.refused > 40 and report.spilled + report.refused == 51
    assert "events are not recorded: spool_full" in caplog.text
    assert "were not recorded" in str(report)


def test_a_write_that_fails_leaves_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    segment = Segment.create(tmp_path, "me")
    segment.append(b'{"a":1}')
    monkeypatch.setattr(os, "write", lambda fd, data: os.pwrite(fd, data[:5], segment.size))
    with pytest.raises(OSError, match="only 5 of"):
        segment.append(b'{"b":2}')
    monkeypatch.undo()
    segment.append(b'{"c":3}')
    assert segment.take(9, 999)[0] == [b'{"a":1}', b'{"c":3}']
    assert segment.path.read_bytes().startswith(b"%08x " % zlib.crc32(b'{"a":1}'))


def test_the_file_is_emptied_while_the_service_keeps_up(service: Service, tmp_path: Path) -> None:
    records = recorder(service.url, tmp_path)
    rollout = records.rollout(environment="a/b")
    fill(rollout)
    assert records.flush(20).complete
    assert [file.stat().st_size for file in spooled(tmp_path)] == [0]
    fill(rollout)
    assert records.close(20).complete
    assert [one["index"] for one in service.messages(rollout.id)] == list(range(6))


def test_threads_share_a_recorder_and_a_rollout(service: Service, tmp_path: Path) -> None:
    records = recorder(service.url, tmp_path)
    shared = records.rollout(environment="a/b")
    own = [records.rollout(environment="a/b") for _ in range(20)]

    def work(rollout: Rollout) -> None:
        for number in range(50):
            rollout.log("user_message", str(number))
            shared.log("user_message", "shared")

    threads = [threading.Thread(target=work, args=(rollout,)) for rollout in own]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert records.close(30).complete
    for rollout in own:
        assert [one["content"] for one in service.messages(rollout.id)] == [str(number) for number in range(50)]
    assert [one["index"] for one in service.messages(shared.id)] == list(range(1000))


def test_a_forked_child_records_on_its_own(service: Service, tmp_path: Path) -> None:
    records = recorder(service.url, tmp_path)
    parent = records.rollout(environment="a/b")
    fill(parent)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        rollout = records.rollout(environment="a/b")
        fill(rollout, 7)
        report = records.close(20)
        os.write(writing, json.dumps([rollout.id, report.complete, report.recorded]).encode())
        os._exit(0)
    os.waitpid(child, 0)
    rollout_id, complete, recorded = json.loads(os.read(reading, 10_000))
    assert (complete, recorded) == (True, 8)
    fill(parent)
    report = records.close(20)
    assert (report.complete, report.recorded) == (True, 7)
    assert len(service.messages(rollout_id)) == 7
    assert [one["index"] for one in service.messages(parent.id)] == list(range(6))


def test_a_closed_recorder_says_so(service: Service, tmp_path: Path) -> None:
    records = recorder(service.url, tmp_path)
    rollout = records.rollout(environment="a/b")
    assert records.close() == records.close()
    with pytest.raises(RuntimeError, match="The recorder is closed"):
        fill(rollout)


def test_token_ids_go_to_the_sidecar(service: Service, tmp_path: Path) -> None:
    reply = Reply({"role": "assistant", "content": "hi"}, prompt_token_ids=[1, 2], token_ids=[3, 4], logprobs=[-0.5, -1.5])
    with recorder(service.url, tmp_path, sidecar_dir=tmp_path / "tokens") as records:
        rollout, other = records.rollout(environment="a/b"), records.rollout(environment="a/b")
        rollout.log("user_message", "u")
        rollout.reply(reply, [])
        other.reply(reply, [])
    records_read = list(read_tokens(tmp_path / "tokens", rollout.id))
    assert [(one.index, one.prompt_token_ids, one.token_ids, one.logprobs) for one in records_read] == [(1, [1, 2], [3, 4], [-0.5, -1.5])]
    assert records_read[0].message == service.messages(rollout.id)[1]["eventId"]
    assert len(list(read_tokens(tmp_path / "tokens"))) == 2
    # The service does not get them.
    assert "token_ids" not in json.dumps(list(service.stored.values()))


def test_variables_without_a_usable_proxy_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "localhost,[::1]")
    records = recorder(DEAD, tmp_path)
    fill(records.rollout(environment="a/b"))
    report = records.close(0.5)
    assert (report.spilled, len(spooled(tmp_path))) == (4, 1)
    assert "Invalid port" in str(report) and "NO_PROXY" in str(report)


def test_a_spool_that_cannot_be_made_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "spool").write_text("a file")
    with pytest.raises(OSError):
        recorder(DEAD, tmp_path)


def test_palestra_upload_of_no_spool(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([str(tmp_path / "spoool"), "--url", DEAD]) == 2
    assert f"There is no spool at {tmp_path / 'spoool'}" in capsys.readouterr().err


def test_a_full_disk_leaves_no_part_of_a_record_in_the_sidecar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sidecar = TokenSidecar(tmp_path)
    records = [TokenRecord("r", str(number), number, None, [1, 2, 3], None) for number in range(3)]
    sidecar.write(records[0])
    write = os.write
    with monkeypatch.context() as full:
        full.setattr(os, "write", lambda fd, data: write(fd, data[:20]))
        with pytest.raises(OSError, match="only 20 of"):
            sidecar.write(records[1])
    sidecar.write(records[2])
    assert list(read_tokens(tmp_path)) == [records[0], records[2]]


def test_a_fork_while_another_thread_writes_the_sidecar(tmp_path: Path) -> None:
    sidecar = TokenSidecar(tmp_path)
    record = TokenRecord("r", "m", 0, None, [1], None)
    sidecar.write(record)
    with sidecar._lock:
        child = os.fork()
        if child == 0:
            signal.alarm(5)
            sidecar.write(record)
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert list(read_tokens(tmp_path)) == [record, record]
    assert len(list(tmp_path.iterdir())) == 2


def test_values_that_json_and_utf_8_do_not_have(service: Service, tmp_path: Path) -> None:
    with recorder(service.url, tmp_path) as records:
        rollout = records.rollout(environment="a/b", metadata={"path": Path("/x"), "loss": float("nan")})
        rollout.log("user_message", "lone \udcff surrogate, ü, \U0001f600")
    assert service.messages(rollout.id)[0]["content"] == "lone \udcff surrogate, ü, \U0001f600"


def test_numbers_of_numpy(service: Service, tmp_path: Path) -> None:
    one, half = np.int64(1), np.float32(0.5)
    with recorder(service.url, tmp_path, sidecar_dir=tmp_path / "tokens") as records:
        rollout = records.rollout(environment="a/b", index=one, step=one, sample=one, policy_version=one)
        rollout.reply(Reply({"role": "assistant", "content": "hi"}, token_ids=[one], logprobs=[half]), [])
        rollout.log("tool_result", "r", reward=half, finished=np.bool_(True))
        rollout.finish("finished", total=half)
    start, _, result, update = service.stored.values()
    assert (start["step"], start["rollout_info"]) == (1, {"task_index": 1, "current_step": 1})
    assert start["metadata"] == {"sample_idx": 1, "policy_step": 1}
    assert (result["reward"], result["isFinished"]) == (0.5, True)
    assert update["rollout_info"]["reward_total"] == 0.5
    assert [(record.token_ids, record.logprobs) for record in read_tokens(tmp_path / "tokens")] == [([1], [0.5])]


def test_palestra_upload(service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    records = recorder(DEAD, tmp_path)
    fill(records.rollout(environment="a/b"))
    records.close(0.05)
    monkeypatch.setenv("OPENREWARD_API_KEY", "or_new_key")
    assert command.main([str(tmp_path / "spool"), "--url", service.url, "--timeout", "20"]) == 0
    assert capsys.readouterr().out == "4 of 4 events are stored\n"
    assert spooled(tmp_path) == []
