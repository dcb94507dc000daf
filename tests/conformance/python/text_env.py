"""Drives palestra_text_env.py through what goes wrong; prints one JSON document of what a trainer was given.

    text_env.py NAME      an environment with the variant `abacus`; the server is in PALESTRA_URL
"""

import gc
import importlib.util
import json
import os
import sys
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FILE = Path(__file__).resolve().parents[3] / "integrations/skyrl-text/palestra_text_env.py"
spec = importlib.util.spec_from_file_location("palestra_text_env", FILE)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
module.RETRY_BASE_DELAY = 0.05

NAME, SERVER = sys.argv[1], os.environ["PALESTRA_URL"]
COUNT = '<tool_call>{"name": "count", "arguments": {}}</tool_call>'
EXTRAS = {"env_name": NAME, "variant": "abacus", "split": "train", "task_index": 0, "max_turns": 9}


class Faults(BaseHTTPRequestHandler):
    """Passes requests on to the server, but for what is planned: a status to answer with, or `cut`: the answer is lost on its way."""

    protocol_version = "HTTP/1.1"
    plan = []
    steps = []

    def relay(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        fault = None
        if self.path.endswith("/step"):
            Faults.steps.append(json.loads(body)["turn"])
            fault = Faults.plan.pop(0) if Faults.plan else None
        if isinstance(fault, int):
            return self.answer(fault, json.dumps({"code": "capacity_exhausted", "message": "full"}).encode())
        headers = {"content-type": "application/json", "x-api-key": self.headers["x-api-key"]}
        request = urllib.request.Request(SERVER + self.path, data=body or None, headers=headers, method=self.command)
        try:
            with urllib.request.urlopen(request) as upstream:
                status, text = upstream.status, upstream.read()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read()
        if fault == "cut":
            self.connection.close()
            self.close_connection = True
            return None
        return self.answer(status, text)

    def answer(self, status, text):
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_DELETE = relay

    def log_message(self, *_args):
        pass


def make(url, **extras):
    os.environ["PALESTRA_URL"] = url
    return module.PalestraTextEnv(extras={**EXTRAS, **extras})


def through_faults():
    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Faults)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    env = make(f"http://127.0.0.1:{proxy.server_address[1]}")
    env.init([])
    outputs = []
    for plan in ([429, 503, "cut"], ["cut"], [503] * 5):
        Faults.plan = list(plan)
        outputs.append(env.step(COUNT))
    after = env.step(COUNT)
    return {"outputs": outputs, "after": after, "sent": Faults.steps, "metrics": env.get_metrics(), "session": env._state["session"]}


def without_server():
    env = make("http://127.0.0.1:9")
    prompt = env.init('[{"role": "user", "content": "x"}]')
    output = env.step(COUNT)
    env.close()
    env.close()
    return {"prompt": prompt, "output": output, "metrics": env.get_metrics()}


def unknown_environment():
    env = make(SERVER, env_name="nobody/nothing")
    env.init([])
    return env.step(COUNT)


def ended_by_somebody_else():
    env = make(SERVER)
    env.init([])
    env._api.ask("DELETE", f"/{env._state['session']}")
    return env.step(COUNT)


def forgotten():
    env = make(SERVER)
    env.init([])
    env.step(COUNT)
    session = env._state["session"]
    del env
    gc.collect()
    return session


def left_open():
    """Ended when the process does."""
    env = make(SERVER)
    env.init([])
    globals()["kept"] = env
    return env._state["session"]


def kept_alive():
    env = make(SERVER)
    env.init([])
    env._keep_alive()
    alive = env in module._keeper._envs
    env.close()
    env._keep_alive()
    return alive and env not in module._keeper._envs


scenarios = [through_faults, without_server, unknown_environment, ended_by_somebody_else, forgotten, kept_alive, left_open]
print(json.dumps({scenario.__name__: scenario() for scenario in scenarios}))
