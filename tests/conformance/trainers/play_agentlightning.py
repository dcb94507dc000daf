"""Agent Lightning's own gateway, local runner, hooks and rollout manager, with palestra.agentlightning as the agent."""

from __future__ import annotations

import asyncio
import json
import os
import re
import runpy
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import policy
import uvicorn
from agentlightning.client import AgentLightningAsyncClient
from agentlightning.controller.k8s_reconciler import build_job_spec
from agentlightning.controller.local_reconciler import LocalReconciler
from agentlightning.hooks import load_hooks
from agentlightning.schemas import RolloutK8sConfig
from agentlightning.server.app import create_app
from agentlightning.verl.agl_rollout_manager import AglRolloutManager
from omegaconf import OmegaConf

import palestra.agentlightning_hooks
from palestra import rows

KEY = "agl-key"
asked_twice = threading.Event()


def with_tokens(body: dict[str, Any], plain: Any = policy.completion) -> dict[str, Any]:
    """A completion as vLLM returns it for `return_token_ids`; each prompt has ids of its own."""
    completion = plain(body)
    completion["prompt_token_ids"] = list(json.dumps(body["messages"]).encode())
    completion["choices"][0]["token_ids"] = [1, 2, 3]
    return completion


def silent_after_one(body: dict[str, Any]) -> dict[str, Any]:
    if any(message["role"] == "assistant" for message in body["messages"]):
        asked_twice.set()
        threading.Event().wait(60)
    return with_tokens(body)


@contextmanager
def gateway() -> Iterator[str]:
    settings = {"model_name": "scripted", "train": {"temperature": 1.0}, "val": {"temperature": 0.7}}
    config = uvicorn.Config(create_app({"key": KEY, "default_proxy": settings}), port=0, log_level="warning")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


@contextmanager
def runner(url: str) -> Iterator[None]:
    """The controller's local runner in a loop of its own."""
    local = {"maximum_size": 2, "poll_interval": 0.1}
    config = OmegaConf.create({"runner_type": "local", "agl_server": {"url": url, "key": KEY}, "local_runner": local})
    started = threading.Event()
    box: list[LocalReconciler] = []

    async def work() -> None:
        async with AgentLightningAsyncClient(base_url=url, key=KEY) as api:
            box.append(LocalReconciler(api=api, config=config))
            started.set()
            await box[0].run()

    thread = threading.Thread(target=lambda: asyncio.run(work()), daemon=True)
    thread.start()
    started.wait()
    yield
    box[0].stop()
    thread.join()


def manager(url: str, step: int, hooks: Any, run: str, agent: str = "palestra.agentlightning.Agent") -> AglRolloutManager:
    return AglRolloutManager(
        agl_base_url=url,
        agl_key=KEY,
        model="scripted",
        step=step,
        train_rollout_n=2,
        poll_interval_seconds=0.1,
        hooks=hooks,
        local_agent_class=agent,
        local_env_map={"PALESTRA_RUN": run},
    )


def batch(environment: str, start: int, stop: int) -> dict[str, list[Any]]:
    listed = list(rows(environment, "verl", stop=stop))[start:]
    return {name: [row[name] for row in listed] for name in listed[0]}


def told(rollout: Any) -> dict[str, Any]:
    return {
        "state": rollout.rollout_state.value,
        "reward": rollout.final_reward,
        "requests": sum(event["event_type"] == "model_request" for event in rollout.events),
        "samples": len(rollout.triplets),
        "error": rollout.error_message,
    }


def train(url: str, fragile: str) -> dict[str, Any]:
    hooks = load_hooks(palestra.agentlightning_hooks.__file__)
    steps: list[Any] = []
    with runner(url):
        for step in range(2):
            one = manager(url, step, hooks, "agent-lightning")
            steps.append(one.enqueue_and_wait_until_completed(batch("palestra/whodunit", step, step + 1), is_train=True))
        failed: list[Any] = []
        for task in range(2):
            one = manager(url, task, hooks, "agent-lightning-fragile", "quick_agent.QuickAgent")
            failed += one.enqueue_and_wait_until_completed(batch(fragile, task, task + 1), is_train=task == 1)
    return {"job": job(url), "played": [[told(rollout) for rollout in step] for step in steps], "fragile": [told(rollout) for rollout in failed]}


def job(url: str) -> dict[str, Any]:
    """The job that the Kubernetes controller makes of the example's template."""
    template = (Path(__file__).parents[3] / "examples/agent-lightning/job.yaml").read_text()
    one = manager(url, 0, None, "agent-lightning")
    rollout = one._get_rollout(one._create_rollouts({"env_name": ["palestra/whodunit"]}, is_train=False)[0].rollout_id)
    rollout.config.k8s = RolloutK8sConfig(job_template=template)
    cluster = {"namespace": "agl", "ttl_after_finished": 60}
    spec = build_job_spec(rollout, OmegaConf.create({"agl_server": {"url": url, "key": KEY}, "k8s_runner": cluster}))
    [container] = spec["spec"]["template"]["spec"]["containers"]
    return {"kind": spec["kind"], "command": container["command"], "env": [one["name"] for one in container["env"]]}


def example() -> dict[str, Any]:
    """What the trainer gets of the example, by Hydra from its own configuration and that of verl's wheel. Only the trainer is replaced."""
    # Its own __init__ imports torch.
    wheel = Path(os.environ["PALESTRA_TRAINERS_DIR"], "verl")
    sys.path.append(str(wheel))
    sys.modules["verl"] = types.ModuleType("verl")
    sys.modules["verl"].__path__ = [str(wheel / "verl")]
    told: dict[str, Any] = {}

    def run_ppo(config: Any, train_dataset: list[Any], val_dataset: list[Any]) -> None:
        chosen = OmegaConf.to_container(config, resolve=True)
        told.update(agent=chosen["agentlightning"]["local"]["agent_class"], hooks=chosen["agentlightning"]["hooks"])
        told.update(samples=chosen["actor_rollout_ref"]["rollout"]["n"], batch=chosen["data"]["train_batch_size"])
        told.update(rows=[len(train_dataset), len(val_dataset)])

    sys.modules["agentlightning.verl.entrypoint"] = types.ModuleType("entrypoint")
    sys.modules["agentlightning.verl.entrypoint"].run_ppo = run_ppo  # type: ignore[attr-defined]
    program = Path(__file__).parents[3] / "examples/agent-lightning/train.py"
    [command] = re.findall(r"python train.py (.*?)\n\"\"\"", program.read_text(), re.DOTALL)
    settings = re.sub(r"\$\(.*?\"\)", palestra.agentlightning_hooks.__file__, command)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("tasks.jsonl").write_text("{}\n" * 40)
        sys.argv[1:] = shlex.split(settings.replace("\\\n", " "))
        runpy.run_path(str(program), run_name="__main__")
        os.chdir("/")
    return {**told, "hooks": told["hooks"] == palestra.agentlightning_hooks.__file__}


def end(url: str) -> dict[str, Any]:
    """A job that is ended in the middle of an episode."""
    one = manager(url, 0, None, "agent-lightning-ended")
    rollout = one._create_rollouts(batch("palestra/whodunit", 0, 1), is_train=False)[0]
    attempt = f"rollout/{rollout.rollout_id}/attempt/0"
    env = {
        **os.environ,
        "AGL_KEY": KEY,
        "AGL_OPENAI_BASE_URL": f"{url}/proxy/{attempt}/mode/val/openai/v1",
        "AGL_EVENT_URL": f"{url}/api/rollouts/{rollout.rollout_id}/attempt/0/events",
        "PALESTRA_RUN": "agent-lightning-ended",
    }
    job = subprocess.Popen([sys.executable, "-m", "palestra.agentlightning"], env=env)
    asked_twice.wait(60)
    job.send_signal(signal.SIGTERM)
    return {"code": job.wait(60), "events": [event.event_type for event in one._get_events(rollout.rollout_id)]}


mode, *environment = sys.argv[1:]
if mode == "example":
    print(json.dumps(example()))
    sys.exit()
policy.completion = with_tokens if mode == "train" else silent_after_one
with policy.endpoint() as model, gateway() as address:
    manager(address, 0, None, "-").register_model([model])
    print(json.dumps(train(address, *environment) if mode == "train" else end(address)))
