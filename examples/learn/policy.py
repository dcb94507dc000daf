"""A linear softmax policy, and GRPO with numpy."""

from dataclasses import dataclass

import numpy as np


@dataclass
class Choice:
    """One decision: the features of every option by name, and which option was taken."""

    options: list
    taken: int


class Policy:
    """Chooses among options by a weighted sum of their features. All weights are 0 at first: every option is equally likely."""

    def __init__(self):
        self._places = {}
        self._weights = np.zeros(0)

    def choose(self, options, random):
        return Choice(options, int(random.choice(len(options), p=self._probabilities(self._matrix(options)))))

    def learn(self, groups, learning_rate):
        """One step of GRPO on groups of (reward or None, choices). The advantage of an episode is its reward minus the mean of its group,
        divided by the standard deviation. A reward of None is a failure of the infrastructure: the episode is left out of the mean and
        of the step, and a group with fewer than two others teaches nothing. Each batch is used once, so the ratio of the policies is 1
        and needs no clipping.
        """
        scored = [[(reward, choices) for reward, choices in group if reward is not None] for group in groups]
        scored = [group for group in scored if len(group) > 1]
        gradient = np.zeros_like(self._weights)
        for group in scored:
            rewards = np.array([reward for reward, _ in group])
            advantages = (rewards - rewards.mean()) / (rewards.std() + 1e-6)
            for advantage, (_, choices) in zip(advantages, group):
                gradient += advantage * sum(map(self._score, choices))
        if scored:
            self._weights = self._weights + learning_rate * gradient / sum(map(len, scored))

    def weights(self):
        """By the name of the feature."""
        return {name: round(float(self._weights[place]), 2) for name, place in self._places.items()}

    def _score(self, choice):
        """The gradient of the log-probability of the choice."""
        matrix = self._matrix(choice.options)
        return matrix[choice.taken] - self._probabilities(matrix) @ matrix

    def _matrix(self, options):
        for name in (name for option in options for name in option):
            self._places.setdefault(name, len(self._places))
        self._weights = np.pad(self._weights, (0, len(self._places) - len(self._weights)))
        matrix = np.zeros((len(options), len(self._places)))
        for row, option in zip(matrix, options):
            for name, value in option.items():
                row[self._places[name]] = value
        return matrix

    def _probabilities(self, matrix):
        logits = matrix @ self._weights
        odds = np.exp(logits - logits.max())
        return odds / odds.sum()
