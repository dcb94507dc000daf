"""Oumi's GRPO on palestra/whodunit, with the settings of a YAML file."""

import sys

from oumi.core.configs import TrainingConfig
from oumi.train import train

from palestra.trl import environment_factory, record_rollouts


def main(file: str, environment: str = "palestra/whodunit") -> None:
    config = TrainingConfig.from_yaml(file)
    config.finalize_and_validate()
    info = {"lr": config.training.learning_rate, "model_name": config.model.model_name}
    # Oumi's command line has no setting for environments; its function hands them to TRL.
    arguments = {
        "environment_factory": environment_factory(environment),
        "reward_funcs": record_rollouts(config.training.grpo, **info),
    }
    train(config, additional_trainer_kwargs=arguments)


if __name__ == "__main__":
    main(*sys.argv[1:])
