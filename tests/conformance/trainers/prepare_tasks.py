"""Loads files of tasks by the loaders of trainers; prints what each loader makes of its first row, and the task that the row names.

usage: prepare_tasks.py FORMAT=FILE...
"""

import importlib.util
import json
import os
import sys
import tempfile
import types
from pathlib import Path

from palestra.places import task_of


def of_datasets(file):
    """TRL, AReaL and rLLM read rows by `datasets`, and so does anything that reads `messages`."""
    from datasets import load_dataset

    with tempfile.TemporaryDirectory() as cache:
        kind = "parquet" if file.endswith(".parquet") else "json"
        return [dict(row) for row in load_dataset(kind, data_files=file, split="train", cache_dir=cache)]


class Words:
    """A tokenizer that counts words: what a loader needs of one."""

    pad_token_id = 0

    def apply_chat_template(self, messages, tokenize=True, **_options):
        words = " ".join(f"{message['role']}: {message['content']}" for message in messages)
        return words.split() if tokenize else words


def of_skyrl(file):
    """SkyRL's PromptDataset, of the wheel. Its imports of torch's world are for types and logging only."""
    source = Path(os.environ["PALESTRA_TRAINERS_DIR"], "skyrl/skyrl/train/dataset/dataset.py")
    sys.modules["transformers"] = types.SimpleNamespace(PreTrainedTokenizerBase=object)
    sys.modules["loguru"] = types.SimpleNamespace(logger=types.SimpleNamespace(info=lambda *_: None))
    spec = importlib.util.spec_from_file_location("skyrl_dataset", source)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    dataset = module.PromptDataset(file, Words(), max_prompt_length=100_000, num_workers=1)
    loaded = dataset.collate_fn([dataset[index] for index in range(len(dataset))])
    return [{"prompt": row["prompt"], "env_class": row["env_class"], **row["env_extras"]} for row in loaded]


def of_inspect(file):
    from inspect_ai.dataset import json_dataset

    samples = list(json_dataset(file))
    messages = [[{"role": one.role, "content": one.content} for one in sample.input] for sample in samples]
    return [{"id": sample.id, "input": input, "metadata": sample.metadata} for sample, input in zip(samples, messages)]


def of_verl(file):
    from omegaconf import OmegaConf
    from verl.utils.dataset.rl_dataset import RLHFDataset

    with tempfile.TemporaryDirectory() as cache:
        config = {"cache_dir": cache, "return_raw_chat": True, "filter_overlong_prompts_workers": None}
        dataset = RLHFDataset(file, Words(), OmegaConf.create(config))
        return [{name: value for name, value in dataset[index].items() if name != "dummy_tensor"} for index in range(len(dataset))]


def of_lines(file):
    """slime, miles, NeMo Gym and tinker read JSON lines as they are."""
    return [json.loads(line) for line in Path(file).read_text().splitlines()]


LOADERS = {"skyrl": of_skyrl, "inspect": of_inspect, "verl": of_verl, "slime": of_lines, "miles": of_lines, "nemo-gym": of_lines}

loaded = {}
for argument in sys.argv[1:]:
    format, _, file = argument.partition("=")
    rows = LOADERS.get(format, of_datasets)(file)
    loaded[format] = {"count": len(rows), "first": rows[0], "tasks": [task_of(row).to_dict() for row in rows]}
print(json.dumps(loaded, default=str))
