"""A SkyRL environment that throws global dice, and fails in every way that a library can, for serve-python.spec.ts."""

import os
import random
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
        reward = {"nan": float("nan"), "dice": random.random()}.get(action, 0.5)
        return BaseTextEnvStepOutput(observations=[], reward=reward, done=action == "done", metadata={})
