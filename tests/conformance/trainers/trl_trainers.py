"""TRL's real trainers and rollout loops on a CPU, with a scripted generation instead of a model that can play.

`grpo ENVIRONMENT`: GRPOTrainer, two steps (`grpo-fail`: one). `async ENVIRONMENT`: the loop of AsyncGRPOTrainer's worker. `harness ENVIRONMENT`: that of its
OpenEnv worker. The two loops talk to an HTTP server with vLLM's route.
"""

from __future__ import annotations

import ast
import functools
import inspect
import json
import multiprocessing
import queue
import re
import runpy
import sys
import tempfile
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import policy
import trl
from datasets import Dataset
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from palestra import client_of
from palestra.trl import environment_factory

END = "<|im_end|>"
ROOT = Path(__file__).parents[3]


def tokenizer() -> PreTrainedTokenizerFast:
    """Bytes as tokens, with a chat template of TRL whose calls TRL can read."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    bytewise = Tokenizer(models.BPE(vocab={letter: number for number, letter in enumerate(letters)}, merges=[]))
    bytewise.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytewise.decoder = decoders.ByteLevel()
    template = (Path(trl.__file__).parent / "chat_templates/qwen3.jinja").read_text()
    special = {"eos_token": END, "pad_token": "<|endoftext|>", "additional_special_tokens": ["<|im_start|>"]}
    return PreTrainedTokenizerFast(tokenizer_object=bytewise, chat_template=template, **special)


TOKENIZER = tokenizer()


def generate(prompt: list[int]) -> list[int]:
    """What the scripted policy says after a prompt: two calls, then a last word."""
    text = TOKENIZER.decode(prompt)
    turn = text.count("<|im_start|>assistant") - 1
    reply = "Done."
    if turn < 2:
        name, arguments = policy.next_call([{"role": "user", "content": text}, *([{"role": "assistant"}] * turn)])
        reply = f"I {name} now.\n<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"
    return TOKENIZER(reply + END)["input_ids"]


def documented(environment: str, names: dict[str, Any], start: str) -> dict[str, Any]:
    """Runs the code block of docs/trainers/trl.md that imports `start`, and returns its names."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/trainers/trl.md").read_text(), re.DOTALL)
    [block] = [block for block in blocks if block.startswith(f"from {start} import")]
    exec(block.replace("palestra/whodunit", environment), names)
    return names


def dataset(tasks: int = 2) -> Dataset:
    return Dataset.from_list([{"prompt": [{"role": "user", "content": ""}], "task_index": index} for index in range(tasks)])


def example(trainer: str) -> trl.GRPOConfig:
    """The settings of an example, as TRL accepts them on a CPU."""
    calls = (node for node in ast.walk(ast.parse((ROOT / f"examples/{trainer}/train.py").read_text())) if isinstance(node, ast.Call))
    [call] = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "GRPOConfig"]
    chosen = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
    return trl.GRPOConfig(**{**chosen, "output_dir": tempfile.mkdtemp(), "use_cpu": True, "bf16": False})


def check_worker(loop_class: Any) -> None:
    """TRL's loop takes the arguments of examples/trl/async_openenv.py. The worker that hands them to it would start a process."""
    worker = runpy.run_path(str(ROOT / "examples/trl/async_openenv.py"))["worker"]
    worker.__globals__["HarnessRolloutWorker"] = lambda **options: options
    options = worker(model_name="scripted", dataset=dataset(), processing_class=TOKENIZER)
    accepted = {name for one in loop_class.__mro__[:2] for name in inspect.signature(one).parameters}
    assert set(options) <= accepted, set(options) - accepted


class Scripted(trl.GRPOTrainer):
    def _generate_single_turn(self, prompt_ids: list[list[int]], *_arguments: Any, **_options: Any) -> Any:
        return [generate(prompt) for prompt in prompt_ids], None


def grpo(environment: str, steps: int) -> Any:
    shape = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "max_position_embeddings": 32_768}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8}
    model = Qwen3ForCausalLM(Qwen3Config(vocab_size=len(TOKENIZER), **shape, **heads))
    args = trl.GRPOConfig(
        output_dir=tempfile.mkdtemp(),
        use_cpu=True,
        bf16=False,
        max_steps=steps,
        per_device_train_batch_size=4,
        num_generations=2,
        max_completion_length=8192,
        shuffle_dataset=False,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
    )
    names = {"GRPOTrainer": Scripted, "model": model, "tokenizer": TOKENIZER, "args": args, "load_dataset": lambda *_, **__: dataset()}
    trainer = documented(environment, names, "palestra.trl")["trainer"]
    trainer.train()
    logged = [entry for entry in trainer.state.log_history if "reward" in entry]
    return {"rewards": [entry["reward"] for entry in logged], "columns": sorted(name for name in logged[0] if name.startswith("rewards/"))}


@contextmanager
def vllm() -> Any:
    """A server with the route of vLLM that the loops use."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            ids = generate(body["prompt"])
            answer = json.dumps({"choices": [{"token_ids": ids, "logprobs": {"token_logprobs": [-0.5] * len(ids)}}]}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()


def rolled_out(loop_class: Any, groups: int, **options: Any) -> Any:
    """Runs a loop of AsyncGRPOTrainer in this process until it has scored so many groups, as its child process runs it."""
    buffer: queue.Queue[Any] = queue.Queue()
    with vllm() as url:
        loop = loop_class(
            model_name="scripted",
            processing_class=TOKENIZER,
            eos_token_ids=[TOKENIZER.eos_token_id],
            rollout_buffer=buffer,
            model_version_value=multiprocessing.Value("i", 0),
            heartbeat_value=multiprocessing.Value("d", 0.0),
            failed_event=threading.Event(),
            exception_info_queue=queue.Queue(),
            metrics_queue=queue.Queue(),
            num_generations=2,
            max_inflight_tasks=2,
            max_tokens=8192,
            max_tool_calling_iterations=4,
            vllm_server_url=url,
            **options,
        )
        thread = threading.Thread(target=loop.run, daemon=True)
        thread.start()
        samples: dict[int, list[Any]] = {}
        while len(samples) < groups or any(len(rows) < 2 for rows in list(samples.values())[:groups]):
            try:
                sample = buffer.get(timeout=1)
            except queue.Empty:
                if thread.is_alive():
                    continue
                raise RuntimeError("the loop has ended") from None
            samples.setdefault(sample.group_id, []).append([sample.metrics["reward"], int(sum(sample.completion_mask))])
        loop._loop.call_soon_threadsafe(loop._stop_event.set)
        thread.join(60)
        return {"ended": not thread.is_alive(), "samples": dict(sorted(samples.items())[:groups])}


def main(mode: str, environment: str) -> Any:
    if mode == "grpo":
        assert [example(trainer).num_generations for trainer in ("trl", "unsloth")] == [8, 8]
        return grpo(environment, 2)
    if mode == "grpo-fail":
        client_of().transport._retry_for_s = 1.0  # Not the two minutes of a restart.
        return grpo(environment, 1)
    from accelerate.state import PartialState

    PartialState()
    if mode == "async":
        from trl.experimental.async_grpo.async_rollout_worker import _AsyncRolloutLoop

        factory = environment_factory(environment, samples=2)
        return rolled_out(_AsyncRolloutLoop, 2, dataset=dataset(), reward_funcs=[], environment_factory=factory)
    from openenv.core.harness import MCPHarnessAdapter
    from trl.experimental.async_grpo.openenv_harness import _HarnessRolloutLoop

    check_worker(_HarnessRolloutLoop)
    args = SimpleNamespace(num_generations=2)
    factory = documented(environment, {"functools": functools, "args": args}, "palestra.openenv")["factory"]
    harness = {"harness_session_factory": factory, "harness_adapter": MCPHarnessAdapter()}
    return rolled_out(_HarnessRolloutLoop, 2, dataset=dataset(), reward_funcs=[], **harness)


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
