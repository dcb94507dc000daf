"""Runs the trainers' own metric functions on groups of rewards; prints their figures.

The functions are cut out of the unpacked wheels as they are, because their modules import torch at the top.

usage: trainer_metrics.py WHEELS SETS      WHEELS holds skyrl/, verl/, tinker_cookbook/; SETS is JSON: {NAME: [[REWARD, ...], ...]}
       trainer_metrics.py WHEELS - BATCHES the names and figures that SkyRL prints for batches with token-level rewards; BATCHES is JSON:
                                           {NAME: {"rewards": [[REWARD, ...], ...], "uids": [...], "sources": [...], "n": N}}
"""

import __future__
import ast
import json
import pathlib
import sys
from types import SimpleNamespace

wheels = pathlib.Path(sys.argv[1])


def functions(path, *names, **given):
    """The named functions of a module, with those of its imports that this interpreter has."""
    tree = ast.parse((wheels / path).read_text())
    scope = dict(given)

    def execute(node):
        code = compile(ast.Module([node], []), path, "exec", flags=__future__.annotations.compiler_flag)
        exec(code, scope)

    for node in tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            try:
                execute(node)
            except ImportError:
                pass
        elif isinstance(node, ast.FunctionDef) and node.name in names:
            node.decorator_list = []  # torch.no_grad, which matters to no number
            execute(node)
    missing = [name for name in names if name not in scope]
    if missing:
        raise SystemExit(f"{path} has no {missing}")
    return SimpleNamespace(**{name: scope[name] for name in names})


skyrl = functions("skyrl/skyrl/train/generators/utils.py", "get_metrics_from_generator_output", MetricsOutput=dict)
skyrl_filter = functions("skyrl/skyrl/train/utils/trainer_utils.py", "zero_variance_filter")
verl = functions("verl/verl/trainer/ppo/metric_utils.py", "bootstrap_metric", "calc_maj_val", "process_validation_metrics")
same = functions("tinker_cookbook/tinker_cookbook/utils/misc_utils.py", "all_same")
tinker = functions("tinker_cookbook/tinker_cookbook/rl/metric_util.py", "_compute_by_group_metrics", all_same=same.all_same)



def figures(groups):
    uids = [str(index) for index, group in enumerate(groups) for _ in group]
    rewards = [reward for group in groups for reward in group]
    headline = skyrl.get_metrics_from_generator_output({"rewards": rewards}, uids)
    kept = {uids[index] for index in skyrl_filter.zero_variance_filter(rewards, uids, tol=1e-6)}
    skyrl_figures = {
        "reward/avg_raw_reward": headline["avg_score"],
        "reward/avg_pass_at_n": headline["pass_at_n"],
        "reward/mean_positive_reward": headline["mean_positive_reward"],
        "reward/num_zero_variance_filtered": len(groups) - len(kept),
    }
    verl_figures = verl.process_validation_metrics(["s"] * len(uids), uids, {"score": rewards})["s"]["score"]
    trajectory_groups = [SimpleNamespace(get_total_rewards=lambda group=group: group) for group in groups]
    return {
        "skyrl": skyrl_figures,
        "verl": {key: float(value) for key, value in verl_figures.items()},
        "tinker": tinker._compute_by_group_metrics(trajectory_groups),
    }


def skyrl_batch(batch):
    """As trainer.py prints a training batch and evaluate.py an evaluation."""
    output, uids, n = {"rewards": batch["rewards"]}, batch["uids"], batch["n"]
    overall = skyrl.get_metrics_from_generator_output(output, uids)
    named = {"avg_score": overall["avg_score"], f"pass_at_{n}": overall["pass_at_n"], "mean_positive_reward": overall["mean_positive_reward"]}
    train = {
        "reward/avg_raw_reward": overall["avg_score"],
        f"reward/avg_pass_at_{n}": overall["pass_at_n"],
        "reward/mean_positive_reward": overall["mean_positive_reward"],
    }
    evaluation = {f"eval/all/{key}": value for key, value in named.items()}
    return {"train": train, "eval": {**per_dataset.calculate_per_dataset_metrics(output, uids, batch["sources"], n), **evaluation}}


if sys.argv[2] == "-":
    sanitize = functions("skyrl/skyrl/train/utils/trainer_utils.py", "sanitize_data_source")
    per_dataset = functions(
        "skyrl/skyrl/train/utils/trainer_utils.py",
        "calculate_per_dataset_metrics",
        get_metrics_from_generator_output=skyrl.get_metrics_from_generator_output,
        sanitize_data_source=sanitize.sanitize_data_source,
        GeneratorOutput=dict,
    )
    print(json.dumps({name: skyrl_batch(batch) for name, batch in json.loads(sys.argv[3]).items()}))
else:
    print(json.dumps({name: figures(groups) for name, groups in json.loads(sys.argv[2]).items()}))
