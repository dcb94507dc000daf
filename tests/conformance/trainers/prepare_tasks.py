"""Loads files of tasks by the loaders of trainers; prints what each loader makes of its first row, and the task that the row names.

usage: prepare_tasks.py FORMAT=FILE...
"""

import importlib.util
import json
import os
import shutil
import sys
import tempfile
import types
from pathlib import Path

from palestra.places import task_of


WHEELS = Path(os.environ["PALESTRA_TRAINERS_DIR"])


def by_datasets(file):
    from datasets import load_dataset

    kind = "parquet" if file.endswith(".parquet") else "json"
    return load_dataset(kind, data_files=file, split="train", cache_dir=f"{file}.cache")


def of_datasets(file):
    """rLLM reads rows by `datasets`, and so does anything that reads `messages`."""
    return [dict(row) for row in by_datasets(file)]


class Words:
    """A tokenizer that counts words: what a loader needs of one."""

    pad_token_id = 0

    def apply_chat_template(self, messages, tokenize=True, **_options):
        words = " ".join(f"{message['role']}: {message['content']}" for message in messages)
        return [*range(len(words.split()))] if tokenize else words


def of_skyrl(file):
    """SkyRL's PromptDataset, of the wheel. Its imports of torch's world are for types and logging only."""
    source = WHEELS / "skyrl/skyrl/train/dataset/dataset.py"
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

    config = {"cache_dir": f"{file}.cache", "return_raw_chat": True, "filter_overlong_prompts_workers": None}
    dataset = RLHFDataset(file, Words(), OmegaConf.create(config))
    return [{name: value for name, value in dataset[index].items() if name != "dummy_tensor"} for index in range(len(dataset))]


def of_trl(file):
    """TRL's trainers read rows by `datasets`, and apply the chat template to those that are conversational."""
    from trl.data_utils import is_conversational, maybe_apply_chat_template

    rows = of_datasets(file)
    for row in rows:
        assert is_conversational(row), row
        assert maybe_apply_chat_template(row, Words())["prompt"].startswith("user: "), row
    return rows


def of_openrlhf(file):
    """As its trainer prepares `--data.prompt_dataset`, with the flags of the page."""
    from openrlhf.datasets import PromptDataset
    from openrlhf.datasets.utils import blending_datasets

    data = types.SimpleNamespace(input_key="input", label_key="label", apply_chat_template=True)
    strategy = types.SimpleNamespace(args=types.SimpleNamespace(data=data), print=lambda *_: None, is_rank_0=lambda: False)
    dataset = PromptDataset(blending_datasets(file, strategy=strategy), Words(), strategy)
    columns = dataset.collate_fn([dataset[index] for index in range(len(dataset))])
    return [{"datasource": source, "input": prompt, "label": label, "images": images} for source, prompt, label, images in zip(*columns)]


def of_miles(file):
    """miles' data set of the wheel, which imports torch and ray, with the flags of the page."""
    sys.path.append(str(WHEELS / "miles"))
    from miles.utils.data import Dataset

    samples = Dataset(file, Words(), None, None, prompt_key="prompt", label_key="label", tool_key="tools", metadata_key="metadata").samples
    return [{"prompt": sample.prompt, "label": sample.label, "metadata": sample.metadata} for sample in samples]


def of_areal(file):
    """The data loader that AReaL's trainer makes of the rows that examples/areal reads."""
    from areal_wheel import package

    for name in ("areal", "areal.infra", "areal.infra.data_service", "areal.engine.fsdp_utils"):
        package(name)
    from areal.api.cli_args import TrainDatasetConfig
    from areal.utils.dataloader import create_dataloader

    tasks = by_datasets(file)
    [batch] = create_dataloader(tasks, 0, 1, TrainDatasetConfig(path=file, type="rl", batch_size=len(tasks), shuffle=False))
    return batch


def of_nemo_gym(file):
    """NeMo Gym's preparation of data for training with the configuration of examples/nemo-gym, then what it makes of rows for rollouts."""
    sys.path.insert(0, str(WHEELS / "nemo_gym"))
    # Downloads from registries, whose clients are not installed.
    sys.modules["nemo_gym.gitlab_utils"] = types.SimpleNamespace(download_jsonl_dataset=None)
    sys.modules["nemo_gym.hf_utils"] = types.SimpleNamespace(download_hf_dataset_as_jsonl=None)
    from nemo_gym.global_config import GlobalConfigDictParser, GlobalConfigDictParserConfig
    from nemo_gym.rollout_collection import RolloutCollectionHelper
    from nemo_gym.train_data_utils import TrainDataProcessor
    from omegaconf import OmegaConf

    os.environ["PALESTRA_API_KEY"] = "key"
    configuration = Path(__file__).parents[3] / "examples/nemo-gym/palestra.yaml"
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        shutil.copy(file, "train.jsonl")
        chosen = {"config_paths": [str(configuration)], "mode": "train_preparation", "output_dirpath": "prepared"}
        # What a future version refuses is an error today.
        chosen["error_on_agent_without_environment_server"] = True
        initial = OmegaConf.merge(GlobalConfigDictParserConfig.NO_MODEL_GLOBAL_CONFIG_DICT, chosen)
        options = {"skip_load_from_cli": True, "skip_load_from_dotenv": True, "offline": True}
        config = GlobalConfigDictParser().parse(GlobalConfigDictParserConfig(initial_global_config_dict=initial, **options))
        TrainDataProcessor().run(config)
        prepared = of_lines("prepared/train.jsonl")
        # It counts the rows that it accepts, and copies all of them.
        assert json.loads(Path("prepared/train_metrics.json").read_text())["Number of examples"] == len(prepared)
        os.chdir("/")
    return RolloutCollectionHelper().preprocess_examples(prepared, global_config_dict=config)


def of_lines(file):
    """slime and tinker read JSON lines as they are."""
    return [json.loads(line) for line in Path(file).read_text().splitlines()]


LOADERS = {
    "skyrl": of_skyrl,
    "inspect": of_inspect,
    "verl": of_verl,
    "trl": of_trl,
    "openrlhf": of_openrlhf,
    "areal": of_areal,
    "miles": of_miles,
    "nemo-gym": of_nemo_gym,
    "slime": of_lines,
}

loaded = {}
for argument in sys.argv[1:]:
    format, _, file = argument.partition("=")
    rows = LOADERS.get(format, of_datasets)(file)
    loaded[format] = {"count": len(rows), "first": rows[0], "tasks": [task_of(row).to_dict() for row in rows]}
print(json.dumps(loaded, default=str))
