"""Runs the metric code of trainers that no conformance run can install, on the rewards of `trainer_rewards.json`; writes their part of `trainer_goldens.json`.

    trainer_goldens.py trl                        a Python with trl 1.16.0 (and so torch); no network: GRPOTrainer itself, on the processor
    trainer_goldens.py slime --checkout DIR       the same Python and wandb, httpx; THUDM/slime at 624b824a898ab0ec1fcb4d373004c7f3852bf515
    trainer_goldens.py rllm --checkout DIR        any Python from 3.10; rllm-org/rllm at 9beb6e0f676a46d38858991fd79ac5f8e0b16d4c
    trainer_goldens.py prime-rl --checkout DIR    Python 3.12 with verifiers 0.3.1.dev59; PrimeIntellect-ai/prime-rl at 559b44772e471d1538537b8805cc77f3824a5e64

DIR is a clone, of which the commit is recorded. A run is a set of `trainer_rewards.json`, how the trainer was set up, and the figures under the
names that it prints; `raised` where it fails instead. libs/metrics/src/goldens.spec.ts compares them with our lenses, without any Python.
"""

import __future__
import argparse
import ast
import importlib.metadata
import importlib.util
import json
import math
import os
import platform
import subprocess
import sys
import types
from pathlib import Path

HERE = Path(__file__).resolve().parent
SETS = json.loads((HERE / "trainer_rewards.json").read_text())


def flat(groups):
    return [item for group in groups for item in group]


def sizes(groups):
    return {len(group) for group in groups}


def run(name, settings, make):
    """One entry of `runs`: figures, null for one that the trainer prints as none or NaN; the name of the exception where it fails."""
    entry = {"set": name, "settings": settings}
    try:
        return {**entry, "figures": {key: None if value is None or math.isnan(value) else float(value) for key, value in make().items()}}
    except (TypeError, AssertionError) as error:
        return {**entry, "raised": type(error).__name__}


def versions(*packages):
    return ", ".join([f"Python {platform.python_version()}", *[f"{name} {importlib.metadata.version(name)}" for name in packages]])


def commit_of(checkout):
    def git(*words):
        return subprocess.run(["git", "-C", checkout, *words], check=True, capture_output=True, text=True).stdout.strip()

    if git("status", "--porcelain"):
        raise SystemExit(f"{checkout} is not as it was committed")
    return git("rev-parse", "HEAD")


def record_trl(_checkout):
    from trainer_goldens_trl import runs

    return {"what": versions("trl", "torch", "transformers"), "runs": runs(SETS, run)}


def record_slime(checkout):
    """Its own modules. The ranks of Megatron, which are not there, are those of one process; what would go to a logger is what it printed."""
    import torch.distributed

    sys.path.insert(0, checkout)
    parallel = types.SimpleNamespace(
        get_tensor_model_parallel_rank=lambda: 0,
        is_pipeline_last_stage=lambda: True,
        get_context_parallel_world_size=lambda: 1,
        get_data_parallel_world_size=lambda **_: 1,
        get_data_parallel_src_rank=lambda **_: 0,
        get_data_parallel_group_gloo=lambda **_: None,
    )
    core = types.ModuleType("megatron.core")
    core.mpu = parallel
    # Imported for fields of tokens, of which there are none here.
    tokens = types.ModuleType("slime.backends.megatron_utils.cp_utils")
    tokens.get_sum_of_sample_mean = None
    sys.modules.update({
        "megatron": types.ModuleType("megatron"),
        "megatron.core": core,
        "slime.backends.megatron_utils": types.ModuleType("slime.backends.megatron_utils"),
        "slime.backends.megatron_utils.cp_utils": tokens,
    })
    from slime.observability import logging_utils, metric_utils, rollout_metrics, train_metric_utils
    from slime.utils.types import Sample

    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    printed = {}
    logging_utils.log = lambda _args, figures, step_key: printed.update(figures)
    wanted = ("raw_reward", "pass@", "zero_std/")

    def arguments(groups, log_passrate):
        return types.SimpleNamespace(
            custom_eval_rollout_log_function_path=None, custom_rollout_log_function_path=None, load_debug_rollout_data=False,
            advantage_estimator="grpo", reward_key=None, log_reward_category=None, rollout_num_gpus=None,
            wandb_always_use_train_step=False, ci_test=False, log_multi_turn=False, log_correct_samples=False, log_passrate=log_passrate,
            n_samples_per_eval_prompt=len(groups[0]), n_samples_per_prompt=len(groups[0]), rollout_batch_size=len(groups),
        )

    def figures_of(call, extra=()):
        printed.clear()
        call()
        return {key: value for key, value in printed.items() if key in extra or any(word in key for word in wanted)}

    runs = []
    whole = {name: SETS[name]["rewards"] for name in ("vector 8", "solved by eight")}
    numbers = {name: [[None if reward is None else float(reward) for reward in group] for group in given["rewards"]] for name, given in SETS.items()}
    # Its own graders answer whole numbers or fractions, which it names differently.
    for kind, name, groups in [*[("float", *one) for one in numbers.items()], *[("int", *one) for one in whole.items()]]:
        rewards = flat(groups)
        samples = [Sample(group_index=index, reward=reward) for index, group in enumerate(groups) for reward in group]
        args = arguments(groups, log_passrate=len(sizes(groups)) == 1)
        data = {"set": {"rewards": rewards, "samples": samples}}
        # What Megatron's side has of a batch, as far as these figures need it.
        ones = [1] * len(rewards)
        batch = {"raw_reward": rewards, "response_lengths": ones, "loss_masks": ones, "total_lengths": ones, "global_batch_sizes": ones[:1]}
        runs += [
            run(name, {"rewards": kind, "logs": "log_eval_rollout_data"}, lambda: figures_of(
                lambda: rollout_metrics.log_eval_rollout_data(0, args, data), ["eval/set"])),
            run(name, {"rewards": kind, "logs": "log_rollout_data"}, lambda: figures_of(
                lambda: rollout_metrics.log_rollout_data(0, args, samples, None, 1.0))),
            run(name, {"rewards": kind, "logs": "log_rollout_data of the train side"}, lambda: figures_of(
                lambda: train_metric_utils.log_rollout_data(0, args, dict(batch)))),
            # slime has this for other values; of rewards it prints the mean alone.
            run(name, {"rewards": kind, "logs": "none, compute_statistics"}, lambda: {
                f"raw_reward/{how}": value for how, value in metric_utils.compute_statistics(rewards).items()}),
        ]
    runs.append(run("uneven groups", {"logs": "log_eval_rollout_data", "log_passrate": True}, lambda: figures_of(
        lambda: rollout_metrics.log_eval_rollout_data(
            0, arguments(SETS["uneven groups"]["rewards"], True), {"set": {"rewards": flat(SETS["uneven groups"]["rewards"])}}))))
    return {"what": versions("torch", "numpy"), "commit": commit_of(checkout), "runs": runs}


def record_rllm(checkout):
    """`EvalResult.from_items`, of items as `run_dataset` (rllm/eval/runner.py) makes them; right is a reward of 1, which an evaluator decides."""
    sys.path.insert(0, checkout)
    from rllm.eval.results import EvalItem, EvalResult

    def item(task, attempt, reward, stop):
        error = None if stop in POLICY else "missing episode" if stop == "cancelled" else stop
        return EvalItem(idx=task, attempt=attempt, reward=reward or 0.0, is_correct=reward == 1, error=error)

    def figures(given):
        groups = given["rewards"]
        stops = given.get("stops") or [["finished"] * len(group) for group in groups]
        items = [item(task, at, *pair) for task, group in enumerate(groups) for at, pair in enumerate(zip(group, stops[task], strict=True))]
        result = EvalResult.from_items("set", "model", "agent", items, attempts=max(sizes(groups)))
        return {"score": result.score, "errors": result.errors, **{f"pass@{k}": value for k, value in result.pass_at.items()}}

    # Of other rewards nobody but the evaluator knows what is right.
    known = {name: given for name, given in SETS.items() if all(0 <= (reward or 0) <= 1 for reward in flat(given["rewards"]))}
    runs = [run(name, {}, lambda: figures(given)) for name, given in known.items()]
    return {"what": versions(), "commit": commit_of(checkout), "runs": runs}


# Stops that are the policy's own; of the others a trace or an item has an error, but the cancelled ones, which the pipeline gave up.
POLICY = ("finished", "max_turns", "max_tokens", "context_length", "parse_error", "no_tool_call")


def record_prime_rl(checkout):
    """Its metrics.py as it is, on episodes and traces of its own `verifiers`; of the modules that metrics.py imports, the functions it uses."""
    import verifiers.v1 as vf
    from verifiers.v1.configs.agent import WireAgentConfig
    from verifiers.v1.task import WireTaskData
    from verifiers.v1.trace import AgentInfo, Error, Reward, TraceTask

    folder = Path(checkout) / "src/prime_rl/orchestrator"

    def cut(module, file, *names):
        """Module of the named functions alone: its imports are configurations, inference clients and CUDA."""
        made = types.ModuleType(module)
        made.__dict__.update(vf=vf, math=math, Any=object)
        tree = ast.parse((folder / file).read_text())
        chosen = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in names]
        if len(chosen) != len(names):
            raise SystemExit(f"{file} has not all of {names}")
        code = compile(ast.Module(chosen, []), str(folder / file), "exec", flags=__future__.annotations.compiler_flag)
        exec(code, made.__dict__)
        sys.modules[module] = made

    for package in ("prime_rl", "prime_rl.orchestrator", "prime_rl.orchestrator.algo"):
        sys.modules[package] = types.ModuleType(package)
    cut("prime_rl.orchestrator.utils", "utils.py", "compute_pass_metrics", "episode_env_name", "episode_group_id")
    cut("prime_rl.orchestrator.algo.routing", "algo/routing.py", "is_trainable", "scalar_advantage")
    spec = importlib.util.spec_from_file_location("prime_rl.orchestrator.metrics", folder / "metrics.py")
    metrics = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = metrics
    spec.loader.exec_module(metrics)

    conditions = {"max_tokens": "max_output_tokens"}

    def episode(group, reward, stop):
        task = TraceTask(type="Task", data=WireTaskData(idx=group, prompt="go"))
        ok = stop in POLICY or stop == "cancelled"
        errors = [] if ok else [Error(type=stop, message="failed")]
        trace = vf.Trace(
            task=task, agent=AgentInfo(config=WireAgentConfig()), rewards={"reward": None if reward is None else Reward(score=reward)},
            ok=ok, errors=errors, stop_condition=conditions.get(stop, stop),
        )
        return vf.Episode(env=vf.EnvInfo(name="set"), task=task, group=vf.GroupInfo(id=str(group)), ok=ok, traces=[trace])

    wanted = ("/agent/reward/", "/is_truncated/", "/has_error/", "/cancelled/", "/solved_", "/avg@", "/pass@", "/pass^")

    def figures(episodes, prefix):
        """As orchestrator.py logs them, of all episodes and of the effective ones."""
        printed = {}
        for subset, pool in (("all", episodes), ("effective", episodes.effective)):
            printed |= pool.metrics.to_wandb(prefix=prefix, subset=subset)
        return {key: value for key, value in printed.items() if any(word in key for word in wanted)}

    runs = []
    for name, given in SETS.items():
        groups = given["rewards"]
        stops = given.get("stops") or [["finished"] * len(group) for group in groups]
        made = [(stop, episode(index, reward, stop)) for index, group in enumerate(groups) for reward, stop in zip(group, stops[index], strict=True)]
        episodes = [each for _, each in made]
        train = metrics.TrainEpisodes(
            episodes, {trace.id for each in episodes for trace in each.traces}, None, {each.id for stop, each in made if stop == "cancelled"},
        )
        runs.append(run(name, {"plane": "train"}, lambda: figures(train, "train/agg")))
        # An evaluation cancels nothing.
        if not any(stop == "cancelled" for stop, _ in made):
            evaluated = metrics.EvalEpisodes(episodes, max(sizes(groups)))
            runs.append(run(name, {"plane": "eval"}, lambda: figures(evaluated, "eval/set")))
    return {"what": versions("verifiers"), "commit": commit_of(checkout), "runs": runs}


RECORDERS = {"trl": record_trl, "slime": record_slime, "prime-rl": record_prime_rl, "rllm": record_rllm}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trainer", choices=RECORDERS)
    parser.add_argument("--checkout")
    options = parser.parse_args()
    if (options.checkout is None) != (options.trainer == "trl"):
        parser.error("all but trl are run from --checkout DIR")
    file = HERE / "trainer_goldens.json"
    goldens = json.loads(file.read_text()) if file.exists() else {}
    goldens[options.trainer] = RECORDERS[options.trainer](options.checkout)
    parts = [
        f'"{name}": {{"what": {json.dumps(part["what"])}, "commit": {json.dumps(part.get("commit"))}, "runs": [\n'
        + ",\n".join(json.dumps(one) for one in part["runs"])
        + "\n]}"
        for name, part in sorted(goldens.items())
    ]
    file.write_text("{\n" + ",\n".join(parts) + "\n}\n")
    print(f"{options.trainer}: {sum(len(one.get('figures', {})) for one in goldens[options.trainer]['runs'])} figures")


if __name__ == "__main__":
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", HF_DATASETS_OFFLINE="1", CUDA_VISIBLE_DEVICES="", TRL_EXPERIMENTAL_SILENCE="1")
    main()
