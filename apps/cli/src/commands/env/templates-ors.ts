/** Files of a new environment in Python on a server of the package `openreward`, in the layout of its `orwd init`. */
export function orsFiles(name: string): Record<string, string> {
  return {
    'server.py': server(classNameOf(name)),
    'test_server.py': test(classNameOf(name)),
    'requirements.txt': 'openreward>=0.1.112\n',
    Dockerfile: DOCKERFILE,
    '.gitignore': '.venv/\n.palestra/\n__pycache__/\n',
    'README.md': readme(name),
  };
}

const classNameOf = (name: string): string =>
  name
    .split(/[_-]+/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');

const server = (className: string) => `"""Guess a number with ten guesses."""

import os

from openreward.environments import Environment, JSONObject, Server, TextBlock, ToolOutput, tool
from pydantic import BaseModel, ConfigDict, Field

NUMBERS = 1000
GUESSES = 10


class Task(BaseModel):
    secret: int


class GuessInput(BaseModel):
    model_config = ConfigDict(extra="forbid")

    number: int = Field(ge=0, lt=NUMBERS, description="The number that you guess.")


def tasks_of(split: str) -> list[JSONObject]:
    """Every number is a task of one split. The multiplication by a prime number mixes them."""
    numbers = ((index * 7919) % NUMBERS for index in range(NUMBERS))
    return [{"secret": secret} for secret in numbers if (secret % 10 == 0) == (split == "test")]


class ${className}(Environment):
    def __init__(self, task_spec: JSONObject = {}, secrets: dict[str, str] = {}) -> None:
        super().__init__(task_spec)
        self.task = Task.model_validate(task_spec)
        self.guesses_left = GUESSES

    @classmethod
    def list_splits(cls) -> list[str]:
        return ["train", "test"]

    @classmethod
    def list_tasks(cls, split: str) -> list[JSONObject]:
        return tasks_of(split)

    def get_prompt(self) -> list[TextBlock]:
        text = f"I think of a whole number from 0 to {NUMBERS - 1}. Find it with at most {GUESSES} guesses."
        return [TextBlock(text=text)]

    @tool
    async def guess(self, params: GuessInput) -> ToolOutput:
        """Guess the number. The answer says whether it is right, higher or lower."""
        self.guesses_left -= 1
        if params.number == self.task.secret:
            return self._seen("Right!", reward=1.0, finished=True)
        hint = "Higher." if params.number < self.task.secret else "Lower."
        if self.guesses_left > 0:
            return self._seen(f"{hint} {self.guesses_left} guesses left.")
        return self._seen(f"{hint} That was the last guess.", finished=True)

    def _seen(self, text: str, reward: float = 0.0, finished: bool = False) -> ToolOutput:
        return ToolOutput(blocks=[TextBlock(text=text)], reward=reward, finished=finished)


if __name__ == "__main__":
    Server([${className}]).run(port=int(os.environ.get("PORT", "8080")))
`;

const test = (className: string) => `"""python -m unittest"""

import unittest

from server import GuessInput, ${className}, tasks_of


class Test${className}(unittest.IsolatedAsyncioTestCase):
    def test_splits_have_no_task_in_common(self) -> None:
        train, test = ({task["secret"] for task in tasks_of(split)} for split in ("train", "test"))
        self.assertEqual((len(train), len(test), train & test), (900, 100, set()))

    async def test_the_right_guess_has_reward_1(self) -> None:
        environment = ${className}({"secret": 7})
        self.assertIn("10 guesses", environment.get_prompt()[0].text)
        hint = await environment.guess(GuessInput(number=8))
        self.assertEqual((hint.blocks[0].text, hint.reward, hint.finished), ("Lower. 9 guesses left.", 0.0, False))
        right = await environment.guess(GuessInput(number=7))
        self.assertEqual((right.reward, right.finished), (1.0, True))

    async def test_the_tenth_guess_ends_the_episode(self) -> None:
        environment = ${className}({"secret": 7})
        guesses = [await environment.guess(GuessInput(number=0)) for _ in range(10)]
        self.assertEqual([guess.finished for guess in guesses], [False] * 9 + [True])


if __name__ == "__main__":
    unittest.main()
`;

const DOCKERFILE = `FROM python:3.11-slim
WORKDIR /app
COPY requirements.txt .
RUN pip install --no-cache-dir -r requirements.txt
COPY server.py .
EXPOSE 8000
ENV PORT=8000
CMD ["python", "server.py"]
`;

const readme = (name: string) => `# ${name}

Guess a number from 0 to 999 with at most ten guesses. The right guess has reward 1.

\`\`\`sh
python3 -m venv .venv && .venv/bin/pip install -r requirements.txt
\`\`\`

| command                     | does                                                                        |
| --------------------------- | --------------------------------------------------------------------------- |
| \`palestra env dev\`          | serves the environment, restarts it on save and opens its playground        |
| \`.venv/bin/python -m unittest\` | runs \`test_server.py\`                                                     |
| \`palestra env validate\`     | plays sampled tasks and prints a report                                     |
| \`palestra env push\`         | serves it and registers it with the service of \`OPENREWARD_URL\`             |
| \`.venv/bin/python server.py\` | serves it with the Open Reward Standard, without Palestra                   |

\`server.py\` contains the tasks, the prompt and the tools. A tool returns a reward, and \`finished=True\` if the episode
ends. The commands use the interpreter \`.venv/bin/python\`.
`;
