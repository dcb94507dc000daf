"""A player of reasoning-gym's chain_sum (4 + 12 - 7 =), one turn. What the signs mean is learned: whether to add a number, subtract or skip it."""

import re

MAX_TURNS = 1
WAYS = {"add": 1, "subtract": -1, "skip": 0}


class Player:
    """A chat function of one episode. `choices`: its decisions, for the policy to learn from."""

    def __init__(self, policy, random):
        self.choices = []
        self._policy, self._random = policy, random

    def __call__(self, messages, _tools):
        first, *rest = re.search(r"(\d[\d\s+-]*)=", messages[-1]["content"])[1].split()
        total = int(first)
        for sign, number in zip(rest[::2], rest[1::2]):
            choice = self._policy.choose([{f"{sign} means {way}": 1} for way in WAYS], self._random)
            self.choices.append(choice)
            total += list(WAYS.values())[choice.taken] * int(number)
        return "submit", {"answer": str(total)}
