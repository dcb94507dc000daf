import { stringify } from 'yaml';

/** Files of a new OpenEnv environment in Python, in the layout that OpenEnv's tools expect. */
export function openenvFiles(name: string): Record<string, string> {
  const prefix = name
    .split(/[_-]+/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('')
    .replace(/Env$/, '');
  const names = { module: name, prefix: prefix || 'My' };
  return {
    'openenv.yaml': stringify({
      spec_version: 1,
      name,
      version: '0.1.0',
      description: 'Guess a number with hints higher or lower',
      type: 'space',
      runtime: 'fastapi',
      app: 'server.app:app',
      port: 8000,
      // Used by OpenEnv's validation (RFC 008).
      validation: {
        reward: { range: [0, 1], oracle_tolerance: 0, floor_margin: 0.1 },
        resources: { cpu: 1, memory_mb: 512, disk_mb: 256, episode_timeout_s: 60 },
        capabilities: { verifier: { kind: 'reward_channel' } },
        types: { tags: ['game'] },
      },
    }),
    'pyproject.toml': pyproject(names),
    'README.md': readme(names),
    '__init__.py': `from .client import ${names.prefix}Env\nfrom .models import ${names.prefix}Action, ${names.prefix}Observation\n\n__all__ = ["${names.prefix}Action", "${names.prefix}Env", "${names.prefix}Observation"]\n`,
    'models.py': models(names),
    'client.py': client(names),
    'server/__init__.py': '',
    'server/app.py': app(names),
    [`server/${name}_environment.py`]: environment(names),
    'server/requirements.txt': 'openenv>=0.4.1\nuvicorn>=0.24\n',
    'server/Dockerfile': dockerfile(),
    'tests/test_environment.py': test(names),
    '.gitignore': '.venv/\n.palestra/\n__pycache__/\n*.egg-info/\n',
    // `COPY . .` must not put the keys of `env dev` into an image.
    '.dockerignore': '.git\n.palestra\n.venv\n**/__pycache__\n',
  };
}

interface Names {
  module: string;
  prefix: string;
}

const models = ({ prefix }: Names) => `"""Action and observation of the environment."""

from openenv.core.env_server.types import Action, Observation
from pydantic import Field


class ${prefix}Action(Action):
    number: int = Field(ge=0, le=100, description="A guess, from 0 to 100.")


class ${prefix}Observation(Observation):
    text: str = Field(description="Text of the observation.")
    guesses_left: int = Field(description="Remaining guesses.")
`;

const environment = ({ module, prefix }: Names) => `"""${module}: find a number with seven guesses."""

import random
from typing import Any, Optional
from uuid import uuid4

from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import State

try:
    from ..models import ${prefix}Action, ${prefix}Observation
except ImportError:  # served from its own folder
    from models import ${prefix}Action, ${prefix}Observation

LIMIT = 100
GUESSES = 7


class ${prefix}Environment(Environment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__()
        self._state = State(episode_id=str(uuid4()), step_count=0)
        self._secret = 0

    def reset(self, seed: Optional[int] = None, episode_id: Optional[str] = None, **_: Any) -> ${prefix}Observation:
        """The same seed hides the same number."""
        self._state = State(episode_id=episode_id or str(uuid4()), step_count=0)
        self._secret = random.Random(seed).randint(0, LIMIT)
        return self._seen(f"I think of a whole number from 0 to {LIMIT}.")

    def step(self, action: ${prefix}Action, timeout_s: Optional[float] = None, **_: Any) -> ${prefix}Observation:
        self._state.step_count += 1
        if action.number == self._secret:
            return self._seen("Right!", reward=1.0, done=True)
        hint = "Higher." if action.number < self._secret else "Lower."
        return self._seen(hint, reward=0.0, done=self._state.step_count >= GUESSES)

    @property
    def state(self) -> State:
        return self._state

    def _seen(self, text: str, reward: float = 0.0, done: bool = False) -> ${prefix}Observation:
        left = GUESSES - self._state.step_count
        return ${prefix}Observation(text=text, guesses_left=left, reward=reward, done=done)
`;

const app = ({ module, prefix }: Names) => `"""The server: python -m uvicorn server.app:app --port 8000"""

from openenv.core.env_server.http_server import create_app

try:
    from ..models import ${prefix}Action, ${prefix}Observation
    from .${module}_environment import ${prefix}Environment
except ImportError:  # served from its own folder
    from models import ${prefix}Action, ${prefix}Observation
    from server.${module}_environment import ${prefix}Environment

app = create_app(
    ${prefix}Environment,
    ${prefix}Action,
    ${prefix}Observation,
    env_name="${module}",
    max_concurrent_envs=64,
)


def main() -> None:
    import uvicorn

    uvicorn.run(app, host="0.0.0.0", port=8000)


if __name__ == "__main__":
    main()
`;

const client = ({ prefix }: Names) => `"""A typed client: with ${prefix}Env(base_url="http://localhost:8000").sync() as env: env.reset()"""

from typing import Any

from openenv.core import EnvClient
from openenv.core.client_types import StepResult
from openenv.core.env_server.types import State

from .models import ${prefix}Action, ${prefix}Observation


class ${prefix}Env(EnvClient[${prefix}Action, ${prefix}Observation, State]):
    def _step_payload(self, action: ${prefix}Action) -> dict[str, Any]:
        return {"number": action.number}

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[${prefix}Observation]:
        reward, done = payload.get("reward"), bool(payload.get("done", False))
        seen = ${prefix}Observation(**payload.get("observation", {}), reward=reward, done=done)
        return StepResult(observation=seen, reward=reward, done=done)

    def _parse_state(self, payload: dict[str, Any]) -> State:
        return State(**payload)
`;

const pyproject = ({ module }: Names) => `[build-system]
requires = ["setuptools>=61"]
build-backend = "setuptools.build_meta"

[project]
name = "openenv-${module}"
version = "0.1.0"
description = "Guess a number with hints higher or lower"
requires-python = ">=3.10"
dependencies = ["openenv>=0.4.1", "uvicorn>=0.24"]

[project.scripts]
server = "${module}.server.app:main"

[tool.setuptools]
packages = ["${module}", "${module}.server"]
package-dir = { "${module}" = ".", "${module}.server" = "server" }
`;

const dockerfile = () => `# docker build -f server/Dockerfile -t my-environment .
FROM python:3.11-slim
WORKDIR /app
COPY server/requirements.txt server/requirements.txt
RUN pip install --no-cache-dir -r server/requirements.txt
COPY . .
EXPOSE 8000
CMD ["python", "-m", "uvicorn", "server.app:app", "--host", "0.0.0.0", "--port", "8000"]
`;

const test = ({ module, prefix }: Names) => `"""python -m unittest discover tests"""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from models import ${prefix}Action  # noqa: E402
from server.${module}_environment import ${prefix}Environment  # noqa: E402


class Test${prefix}Environment(unittest.TestCase):
    def test_the_same_seed_hides_the_same_number(self) -> None:
        found = [self.find(seed) for seed in (3, 3, 5)]
        self.assertEqual(found[0], found[1])
        self.assertNotEqual(found[0], found[2])

    def test_the_seventh_guess_ends_the_episode(self) -> None:
        environment = ${prefix}Environment()
        environment.reset(seed=3)
        wrong = 0 if self.find(3) != 0 else 1
        ends = [environment.step(${prefix}Action(number=wrong)).done for _ in range(7)]
        self.assertEqual(ends, [False] * 6 + [True])

    def find(self, seed: int) -> int:
        """Halves the range with every guess, which needs at most seven."""
        environment = ${prefix}Environment()
        environment.reset(seed=seed)
        low, high = 0, 100
        while True:
            number = (low + high) // 2
            seen = environment.step(${prefix}Action(number=number))
            if seen.done:
                self.assertEqual(seen.reward, 1.0)
                return number
            low, high = (number + 1, high) if seen.text == "Higher." else (low, number - 1)


if __name__ == "__main__":
    unittest.main()
`;

const readme = ({ module }: Names) => `# ${module}

Guess a number from 0 to 100 with at most seven guesses. The right guess has reward 1.

| command                  | does                                                         |
| ------------------------ | ------------------------------------------------------------ |
| \`pip install -e .\`       | installs the dependencies into the active virtual environment |
| \`palestra env dev\`       | serves it, restarts it on save and opens its playground      |
| \`python -m unittest discover tests\` | runs the tests                                      |
| \`palestra env validate\`  | checks the folder; with \`--level semantic\` plays it too     |
| \`palestra env serve\`     | serves it with OpenEnv's protocol                            |
| \`palestra env push\`      | serves it and registers it with the server of \`PALESTRA_URL\` |

\`models.py\` defines action and observation, \`server/${module}_environment.py\` the behaviour. OpenEnv's own command also accepts this
folder.
`;
