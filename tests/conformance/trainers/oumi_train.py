"""Oumi's `train` with examples/oumi on a CPU: one step of a tiny model on a one-turn environment. `oumi_train.py ENVIRONMENT`"""

from __future__ import annotations

import importlib.util
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from oumi.core.configs import TrainingConfig

from palestra import rows, write_rows

EXAMPLES = Path(__file__).parents[3] / "examples"


def module_of(file: Path) -> Any:
    spec = importlib.util.spec_from_file_location(file.parent.name.replace("-", "_"), file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(environment: str) -> Any:
    folder = Path(tempfile.mkdtemp())
    config = TrainingConfig.from_yaml(EXAMPLES / "oumi/train.yaml")
    config.finalize_and_validate()
    small = module_of(EXAMPLES / "train-trl/train.py")
    tokenizer = small.small_tokenizer()
    tokenizer.save_pretrained(folder / "model")
    small.small_model(tokenizer).save_pretrained(folder / "model")
    write_rows(folder / "train.jsonl", rows(environment, "trl"))
    config.model.model_name, config.model.torch_dtype_str = str(folder / "model"), "float32"
    config.model.model_max_length = 64
    config.data.train.datasets[0].dataset_kwargs = {"data_files": str(folder / "train.jsonl")}
    training = config.training
    training.output_dir, training.max_steps, training.save_steps = str(folder / "output"), 1, 0
    training.enable_tensorboard, training.save_final_model = False, False
    training.grpo.use_vllm, training.grpo.max_completion_length = False, 1
    config.to_yaml(folder / "train.yaml")
    module_of(EXAMPLES / "oumi/train.py").main(str(folder / "train.yaml"), environment)
    return {"type": str(training.trainer_type.value)}


print(json.dumps(main(*sys.argv[1:])))
