"""SkyRL's trainer on hosted environments: set `trainer.override_entrypoint=palestra.skyrl_main` on its command line."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

from palestra.skyrl import PalestraGenerator
from palestra.versions import require

require("skyrl", ">=0.4.0,<0.5", extra="skyrl")

import ray  # noqa: E402
from skyrl.backends.skyrl_train.inference_servers.utils import resolve_policy_model_name  # noqa: E402
from skyrl.train.config import SkyRLTrainConfig  # noqa: E402
from skyrl.train.entrypoints.main_base import BasePPOExp  # noqa: E402
from skyrl.train.utils import validate_cfg  # noqa: E402
from skyrl.train.utils.utils import initialize_ray  # noqa: E402
from skyrl_gym.envs import register  # noqa: E402


class PalestraExp(BasePPOExp):  # type: ignore[misc, unused-ignore]
    """SkyRL's experiment with `PalestraGenerator`. Subclass it for your own experiment."""

    def get_generator(self, cfg: Any, tokenizer: Any, inference_engine_client: Any) -> Any:
        return PalestraGenerator(
            generator_cfg=cfg.generator,
            skyrl_gym_cfg=cfg.environment.skyrl_gym,
            inference_engine_client=inference_engine_client,
            tokenizer=tokenizer,
            policy_model_name=resolve_policy_model_name(cfg),
        )


def config_of(arguments: Sequence[str]) -> Any:
    """The configuration that SkyRL reads from its command line. Raises ValueError for an unknown setting."""
    return SkyRLTrainConfig.from_cli_overrides([one for one in arguments if not one.startswith("trainer.override_entrypoint=")])


def train(cfg: Any) -> None:
    register(id="openreward", entry_point="palestra.skyrl:PalestraEnv")
    PalestraExp(cfg).run()


def main() -> None:
    cfg = config_of(sys.argv[1:])
    validate_cfg(cfg)
    initialize_ray(cfg)
    # The workers of a cluster that was started elsewhere do not have them.
    variables = {name: value for name, value in os.environ.items() if name.startswith(("PALESTRA_", "OPENREWARD_"))}
    ray.get(ray.remote(num_cpus=1, runtime_env={"env_vars": variables})(train).remote(cfg))


if __name__ == "__main__":
    main()
