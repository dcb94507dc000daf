"""vf-eval and vf-validate with the taskset plugin: `eval ENVIRONMENT TASKS SAMPLES [ENDPOINT]`, `validate ENVIRONMENT`, or
`load ENVIRONMENT FILE...`. Each start of verifiers takes ten seconds of a core, so one program does what it can."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import policy


# In every process of verifiers: an environment that is gone is not asked for the two minutes of a restart.
IMPATIENT = """
try:
    from palestra.client import Client
    Client.__init__.__kwdefaults__["retry_for_s"] = 1.0
except ImportError:
    pass
"""


def command(name: str, *arguments: str) -> str:
    """Runs a program of verifiers and returns its output; it inherits the variables of the service."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "sitecustomize.py").write_text(IMPATIENT)
        return command_with(name, *arguments, path=f"{folder}{os.pathsep}{os.environ['PYTHONPATH']}")


def command_with(name: str, *arguments: str, path: str) -> str:
    environment = {**os.environ, "POLICY_API_KEY": "none", "PYTHONPATH": path}
    finished = subprocess.run(
        [str(Path(sys.executable).with_name(name)), *arguments], env=environment, capture_output=True, text=True, timeout=240
    )
    if finished.returncode != 0:
        raise RuntimeError(f"{name} ended with {finished.returncode}: {finished.stdout[-3000:]}{finished.stderr[-3000:]}")
    return finished.stdout + finished.stderr


def lines(folder: str, pattern: str) -> list[dict[str, Any]]:
    return [json.loads(line) for file in Path(folder).glob(pattern) for line in file.read_text().splitlines()]


def evaluate(environment: str, tasks: str, samples: str, endpoint: str | None = None) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder, policy.endpoint() as url:
        arguments = ["--env.taskset.environment", environment, "--env.taskset.stop", tasks, "-r", samples, "-m", "scripted", "-c", "1"]
        client = ["--client.base-url", endpoint or url, "--client.api-key-var", "POLICY_API_KEY"]
        output = ["--env.agent.max-turns", "6", "--no-push", "--no-rich", "-o", folder]
        command("vf-eval", "palestra-verifiers", *arguments, *client, *output)
        traces = [trace for line in lines(folder, "**/traces.jsonl") for trace in line["traces"]]
    traces.sort(key=lambda trace: trace["task"]["data"]["ref"]["index"])
    return [
        {
            "reward": sum(reward["score"] for reward in trace["rewards"].values() if reward is not None),
            "ok": trace["ok"],
            "stop": trace["stop_condition"],
            "errors": [error["type"] for error in trace["errors"]],
            "key": trace["task"]["key"],
            "roles": [node["message"]["role"] for node in trace["nodes"]],
        }
        for trace in traces
    ]


def validate(environment: str) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        arguments = ["--taskset.environment", environment, "--taskset.stop", "2", "--runtime.type", "subprocess", "--only-setup"]
        command("vf-validate", "palestra-verifiers", *arguments, "--no-rich", "-o", folder)
        return [{"mode": row["mode"], "reason": row["reason"]} for row in lines(folder, "**/results.jsonl")]


def load(environment: str, *files: str) -> dict[str, Any]:
    import palestra_verifiers  # noqa: F401
    import verifiers.v1 as vf

    cls = vf.taskset_config_type("palestra-verifiers")
    taskset = vf.load_taskset(cls(id="palestra-verifiers", environment=environment))
    tasks = list(taskset.take(3))
    harness = vf.default_harness_id("palestra-verifiers")
    return {"keys": [task.key for task in tasks], "harness": harness, "configurations": [config(file) for file in files]}


def config(file: str) -> list[dict[str, Any]]:
    """The environments of a configuration of prime-rl, also of one in a document, as verifiers reads them."""
    import tomllib

    import verifiers.v1 as vf

    text = Path(file).read_text()
    if file.endswith(".md"):
        text = text.split("```toml\n")[1].split("```")[0]
    sources = tomllib.loads(text)["orchestrator"]["train"]["source"]
    resolved = [vf.resolve_env_config(source["env"]) for source in (sources if isinstance(sources, list) else [sources])]
    return [{"class": type(one.taskset).__name__, **one.taskset.model_dump(mode="json")} for one in resolved]


print(json.dumps({"eval": evaluate, "validate": validate, "load": load}[sys.argv[1]](*sys.argv[2:])))
