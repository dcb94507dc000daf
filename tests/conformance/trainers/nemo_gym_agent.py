"""The real code of NeMo Gym against `/nemo-gym`: `conformance ENVIRONMENT`, or `agent ENVIRONMENT TASKS SAMPLES`.

The package is unpacked in PALESTRA_TRAINERS_DIR, because its wheel asks for a newer Python.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import uuid
from contextlib import contextmanager
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

sys.path.insert(0, os.path.join(os.environ["PALESTRA_TRAINERS_DIR"], "nemo_gym"))
import httpx
import policy
import uvicorn
from fastapi import FastAPI, Request, Response

URL, KEY, RUN = (os.environ[f"PALESTRA_{name}"] for name in ("URL", "API_KEY", "RUN"))


def address(environment: str) -> dict[str, Any]:
    """Host and port as the configuration of NeMo Gym has them (docs/trainers/nemo-gym.md#address)."""
    return {"host": f"key:{KEY}@{urlsplit(URL).netloc}/nemo-gym/{environment}/runs/{RUN}", "port": 80, "entrypoint": "app.py"}


def row(environment: str, index: int, sample: int) -> dict[str, Any]:
    """A row of `prepare-tasks --format nemo-gym`, with the numbers that a collection of NeMo Gym adds."""
    from palestra.rows import rows
    from palestra.tasks import iter_tasks

    task = list(iter_tasks(environment, "train", start=index, stop=index + 1))
    [written] = rows(task, "nemo-gym")
    return {**written, "_ng_task_index": index, "_ng_rollout_index": sample}


def conformance(environment: str) -> dict[str, Any]:
    from nemo_gym.base_resources_server import ResourcesSeedSessionRequest
    from nemo_gym.testing.session_conformance import check_resources_session_contract

    app = FastAPI()

    @app.post("/{path:path}")
    async def forward(path: str, request: Request) -> Response:
        """The check wants an application in its own process."""
        place = address(environment)
        async with httpx.AsyncClient(timeout=60) as client:
            headers = {"content-type": "application/json", "cookie": request.headers.get("cookie", "")}
            answer = await client.post(f"http://{place['host']}:{place['port']}/{path}", content=await request.body(), headers=headers)
        kept = {name: value for name, value in answer.headers.items() if name in ("content-type", "set-cookie")}
        return Response(answer.content, answer.status_code, kept)

    facts = {"palestra": {"env_name": environment, "split": "train", "task_index": 0}}
    seed = {"resources_session_id": f"session-{uuid.uuid4().hex}", "episode_id": {"rollout_id": "0-0"}}
    place = {"task_id": {"taskset": "tests", "task_id": "0"}, "task_data": facts}
    check_resources_session_contract(app, ResourcesSeedSessionRequest.model_validate({**seed, **place}), keeps_state=True)
    return {"checked": True}


@contextmanager
def serving(app: FastAPI) -> Iterator[int]:
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        threading.Event().wait(0.02)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(10)


def model() -> FastAPI:
    """The Responses API with the scripted policy."""
    app = FastAPI()

    @app.post("/v1/responses")
    async def respond(body: dict[str, Any]) -> dict[str, Any]:
        messages: list[dict[str, Any]] = []
        for item in body["input"]:
            if item.get("type") == "function_call":
                messages.append({"role": "assistant", "content": ""})
            elif item.get("type") == "function_call_output":
                messages.append({"role": "tool", "content": item["output"]})
            elif item.get("role") != "assistant":
                content = item["content"]
                text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
                messages.append({"role": item["role"], "content": text})
        calls = sum(message["role"] == "assistant" for message in messages)
        output: list[dict[str, Any]]
        if calls == 2:
            text = {"type": "output_text", "text": "done", "annotations": []}
            output = [{"id": "m", "type": "message", "role": "assistant", "status": "completed", "content": [text]}]
        else:
            name, arguments = policy.next_call(messages)
            output = [{"type": "function_call", "call_id": f"c{calls}", "name": name, "arguments": json.dumps(arguments)}]
        fixed = {"object": "response", "parallel_tool_calls": True, "tool_choice": "auto", "tools": body.get("tools") or []}
        return {"id": uuid.uuid4().hex, "created_at": 0, "model": "scripted", "output": output, **fixed}

    return app


def agent(environment: str, tasks: str, samples: str) -> dict[str, Any]:
    with serving(model()) as model_port:
        servers: dict[str, Any] = {
            "palestra": {"resources_servers": {"palestra": address(environment)}},
            "policy_model": {"responses_api_models": {"scripted": {"host": "127.0.0.1", "port": model_port, "entrypoint": "app.py"}}},
            "palestra_agent": {"responses_api_agents": {"simple_agent": {"host": "127.0.0.1", "port": 0, "entrypoint": "app.py"}}},
        }
        os.environ["NEMO_GYM_CONFIG_DICT"] = json.dumps(servers)
        from nemo_gym.config_types import AggregateMetricsRequest, BaseServerConfig
        from nemo_gym.server_utils import ServerClient
        from omegaconf import OmegaConf
        from responses_api_agents.simple_agent.app import SimpleAgent, SimpleAgentConfig

        references = {
            "resources_server": {"type": "resources_servers", "name": "palestra"},
            "model_server": {"type": "responses_api_models", "name": "policy_model"},
        }
        config = SimpleAgentConfig(name="palestra_agent", host="127.0.0.1", port=0, entrypoint="app.py", max_steps=6, **references)
        configured = OmegaConf.create(servers)
        client = ServerClient(head_server_config=BaseServerConfig(host="127.0.0.1", port=1), global_config_dict=configured)
        with serving(SimpleAgent(config=config, server_client=client).setup_webserver()) as port:
            configured.palestra_agent.responses_api_agents.simple_agent.port = port
            verified = []
            for index in range(int(tasks)):
                for sample in range(int(samples)):
                    body = {**row(environment, index, sample), "agent_ref": {"type": "responses_api_agents", "name": "palestra_agent"}}
                    answer = httpx.post(f"http://127.0.0.1:{port}/run", json=body, timeout=90)
                    answer.raise_for_status()
                    verified.append(answer.json())
            metrics = httpx.post(f"http://127.0.0.1:{port}/aggregate_metrics", json={"verify_responses": verified}, timeout=60).json()
        assert AggregateMetricsRequest.model_validate({"verify_responses": verified})
    kept = ("reward", "mask_sample", "failure_kind", "_ng_task_index")
    return {"verified": [{name: one.get(name) for name in kept} for one in verified], "metrics": metrics}


print(json.dumps({"conformance": conformance, "agent": agent}[sys.argv[1]](*sys.argv[2:])))
