"""A SkyRL environment that fails in every way that a library can, for serve-python.spec.ts."""

import os
import time

from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput


class RudeEnv(BaseTextEnv):
    def __init__(self, env_config=None, extras=None):
        super().__init__()

    def step(self, action: str) -> BaseTextEnvStepOutput:
        print("noise between the answers", flush=True)
        if action == "raise":
            raise RuntimeError("the library raised")
        if action == "hang":
            time.sleep(3600)
        if action == "exit":
            os._exit(3)
        reward = float("nan") if action == "nan" else 0.5
        return BaseTextEnvStepOutput(observations=[], reward=reward, done=action == "done", metadata={})
