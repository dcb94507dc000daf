"""`reasoning-gym:NAME`: one question, one answer, scored by the dataset's own `score_answer`."""

from __future__ import annotations

import difflib
from typing import Any

import reasoning_gym
from reasoning_gym.factory import DATASETS
from reasoning_gym.utils import extract_answer

from palestra.serve.library import SPLIT_SEEDS, Episode, Json, Options, Output, SeededLibrary, Tool, UsageError, text_argument

#: The answer of a text that explains it, as the system prompts of the library ask for it.
FORMAT = "Give only the final answer to the tool `submit`, or end your last message with <answer>the final answer</answer>."


class ReasoningGym(SeededLibrary):
    """A dataset of the library. Each split is a dataset with another seed."""

    tools = [
        Tool.of_text("submit", "Submits the answer and ends the episode.", "answer", "The final answer, without the explanation."),
    ]
    terminal = ("submit", "answer")

    def __init__(self, options: Options) -> None:
        super().__init__(options, 1_000)
        if options.id not in DATASETS:
            close = difflib.get_close_matches(options.id, DATASETS, 3)
            hint = f" Did you mean {' or '.join(close)}?" if close else f" It has: {', '.join(sorted(DATASETS))}."
            raise UsageError(f"reasoning-gym has no dataset {options.id!r}.{hint}")
        reserved = {"seed", "size"} & set(options.settings)
        if reserved:
            raise UsageError(f"Use --seed and --split-size instead of the setting {sorted(reserved)[0]!r}.")
        self._options = options
        self._datasets = {split: self._dataset(position) for position, split in enumerate(self._splits)}

    def _dataset(self, position: int) -> Any:
        seed = self._options.seed + SPLIT_SEEDS * position
        try:
            return reasoning_gym.create_dataset(self._options.id, size=self._size, seed=seed, **self._options.settings)
        except (TypeError, ValueError, AssertionError) as error:
            raise UsageError(f"reasoning-gym refuses the settings of {self._options.id}: {error}") from error

    def task(self, split: str, index: int) -> Json:
        return {"dataset": self._options.id, **super().task(split, index)}

    def open(self, split: str, index: int) -> Question:
        return Question(self._datasets[split], self._datasets[split][index])


class Question(Episode):
    def __init__(self, dataset: Any, entry: Json) -> None:
        self._dataset = dataset
        self._entry = entry

    def messages(self) -> list[Json]:
        return [{"role": "user", "content": f"{self._entry['question']}\n\n{FORMAT}"}]

    def call(self, name: str, arguments: Json) -> Output:
        text = text_argument(arguments, "answer")
        answer = extract_answer(text)
        reward = self._score(text.strip() if answer is None else answer)
        return Output("The answer was submitted.", reward, finished=True)

    def _score(self, answer: str) -> float:
        try:
            return float(self._dataset.score_answer(answer, self._entry))
        except Exception:
            # Some datasets, such as prime_factorization, raise for an answer in a format that they cannot parse. That answer is wrong. If
            # the known answer raises, too, the dataset has failed.
            self._dataset.score_answer(self._entry["answer"], self._entry)
            return 0.0


def load(options: Options) -> ReasoningGym:
    return ReasoningGym(options)
