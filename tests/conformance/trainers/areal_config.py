"""The configuration of examples/areal, as AReaL's own parser reads it, of the wheel. Prints what the example and the trainer take from it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from areal_wheel import package

for name in ("areal", "areal.infra", "areal.engine.fsdp_utils"):
    package(name)

from areal.api.alloc_mode import ModelAllocation  # noqa: E402
from areal.api.cli_args import GRPOConfig, parse_cli_args, to_structured_cfg  # noqa: E402
from omegaconf import OmegaConf  # noqa: E402


def main(file: str) -> dict[str, Any]:
    # `load_expr_config` also writes a copy, for which it imports the clients of experiment trackers.
    read, _ = parse_cli_args(["--config", file])
    config = OmegaConf.to_object(to_structured_cfg(read, GRPOConfig))
    assert isinstance(config, GRPOConfig)
    engines = [ModelAllocation.from_str(engine.backend, name=name) for name, engine in (("actor", config.actor), ("rollout", config.rollout))]
    return {
        "train": config.train_dataset.path,
        "tokenizer": config.tokenizer_path,
        "tokens": config.gconfig.max_new_tokens,
        "samples": [config.gconfig.n_samples, config.actor.reward_norm.group_size],
        "engines": [[engine.backend, engine.parallel.world_size] for engine in engines],
    }


print(json.dumps(main(str(Path(sys.argv[1]).resolve()))))
