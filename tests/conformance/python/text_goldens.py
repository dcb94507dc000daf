"""Plays the episodes of `text_episodes.json` through SkyRL's own adapters, and writes what the trainer is given to `text_goldens.json`.

    text_goldens.py --environment NAME --skyrl DIR --openenv DIR   SkyRL's OpenRewardEnv on our ORS plane; its OpenEnv on an OpenEnv server of 2025

NAME is a server of tests/support/text-environments.ts that is registered. DIR of --skyrl is a checkout of NovaSky-AI/SkyRL, that of --openenv one
of OpenEnv at b21f034d (its `src` holds `core` and `envs`). The service is found by the variables of the official SDK. Needs the packages skyrl-gym,
openreward and loguru.
"""

import argparse
import importlib.util
import json
import os
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HERE = Path(__file__).resolve().parent
EPISODES = json.loads((HERE / "text_episodes.json").read_text())
PROMPT = [{"role": "user", "content": "go"}]
# The SDK puts the id of the session before the words of a tool that raised.
SESSION = re.compile(r"\(environment session sid=[^)]*\) ")


def load(name, file):
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def play(env, texts, metrics):
    # As the data sets have it: prepare_tasks.py writes a JSON string.
    prompt, metadata = env.init(json.dumps(PROMPT) if metrics else PROMPT)
    steps = []
    try:
        for text in texts:
            output = dict(env.step(text))
            output["metadata"] = {key: value for key, value in output["metadata"].items() if key not in ("env_class", "action")}
            for observation in output["observations"]:
                observation["content"] = SESSION.sub("", observation["content"])
            steps.append(output)
        return {"init": [prompt, metadata], "steps": steps, "metrics": env.get_metrics() if metrics else None}
    finally:
        env.close()


def errors_of(env, texts):
    """What SkyRL's OpenEnv adapter would tell the model of each text, were it not for its UnboundLocalError; None where it finds an action."""
    if not hasattr(env, "_get_openenv_action"):
        return None

    def error_of(text):
        try:
            env._get_openenv_action(env.env_name, text)
        except Exception as error:
            return str(error)
        return None

    return [error_of(text) for text in texts]


class Market:
    """The environments of tests/support/text-environments.ts, as an OpenEnv server of 2025-10 has them."""

    @staticmethod
    def parrot(action):
        message = action["message"]
        if message == "fall silent":
            return {"echoed_message": "", "message_length": 0}, None, True
        return {"echoed_message": message, "message_length": len(message)}, len(message) * 0.1, False

    @staticmethod
    def maze(action):
        number = action["action_id"]
        cells = [index // 4 if index % 4 == 0 else index / 4 for index in range(max(18 + number, 0))]
        seen = {"info_state": cells, "legal_actions": [0, 1, 2], "game_phase": "playing", "current_player_id": 0}
        return {**seen, "opponent_last_action": number if number > 1 else None}, 1.0 if number == 3 else 0.0, number == 3

    @staticmethod
    def market(action):
        total = float(sum(action["actions"]))
        value = 1000.5 + total
        return {"state": action["actions"], "portfolio_value": int(value) if value == int(value) else value, "date": "2026-11-21"}, total, False


def serve(step):
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["content-length"])) or b"{}")
            observation, reward, done = ({}, None, False) if self.path == "/reset" else step(body["action"])
            answer = json.dumps({"observation": observation, "reward": reward, "done": done}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_address[1]}"


CLASSES = {"parrot": ("echo_env", "EchoEnv"), "maze": ("openspiel-env", "OpenSpielEnv"), "market": ("finrl-env", "FinRLEnv")}


def with_skyrl(skyrl, openenv):
    integrations = Path(skyrl) / "examples/train_integrations"
    tools = load("skyrl_openreward", integrations / "openreward/env.py")
    yield "tool_call", lambda _name, extras: (tools.OpenRewardEnv(extras=extras), lambda: None)
    sys.path.insert(0, str(Path(openenv) / "src"))
    actions = load("skyrl_openenv", integrations / "openenv/env.py")

    def make(name, extras):
        env_name, client = CLASSES[name]
        server, url = serve(getattr(Market, name))
        kind = getattr(actions, client)
        # No container: the client itself, on a server that is there already.
        kind.from_docker_image = classmethod(lambda cls, _image: cls(base_url=url))
        return actions.OpenEnv(None, {**extras, "env_name": env_name}), server.shutdown

    yield "action", make


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--skyrl", required=True)
    parser.add_argument("--openenv", required=True)
    parser.add_argument("--environment", required=True)
    options = parser.parse_args()
    makers = dict(with_skyrl(options.skyrl, options.openenv))
    played = []
    for episode in EPISODES:
        parse, texts = episode["parse"], episode["texts"]
        if parse not in makers:
            continue
        extras = {"env_name": options.environment, "split": "train", "task_index": 0, "max_turns": episode["max_turns"]}
        env, end = makers[parse](episode["variant"], extras)
        try:
            played.append({"name": episode["name"], "errors": errors_of(env, texts), **play(env, texts, metrics=parse == "tool_call")})
        finally:
            end()
    (HERE / "text_goldens.json").write_text(json.dumps(played).replace('}, {"name"', '},\n{"name"') + "\n")


if __name__ == "__main__":
    os.environ.setdefault("OPENREWARD_UPLOAD_ROLLOUT", "false")
    main()
