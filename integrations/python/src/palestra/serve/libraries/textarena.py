"""`textarena:ID`: a text game behind the tool `act`. The policy has one seat, or all of them.

Settings: `num_players`; `seat` of the policy (0); `opponent`, which plays the other seats: `self` (the policy plays every seat in turn) or
`module:attribute`, a function from the observation of a seat to its action, such as an agent of the library.
"""

from __future__ import annotations

import difflib
from importlib import import_module
from typing import Any

import textarena
from textarena.core import GAME_ID, ObservationType, Wrapper
from textarena.wrappers import LLMObservationWrapper

from palestra.serve.library import Episode, Json, Options, Output, SeededLibrary, Tool, UsageError, text_argument

MAX_PLAYERS = 15


class TextArena(SeededLibrary):
    """A game of the library. A task is a seed."""

    tools = [Tool.of_text("act", "Makes a move and returns what happens until your next turn.", "action", "The move, as the rules ask for it.")]
    terminal = ("act", "action")

    def __init__(self, options: Options) -> None:
        super().__init__(options, 1_000)
        known = textarena.envs.registration.ENV_REGISTRY
        if options.id not in known:
            close = difflib.get_close_matches(options.id, known, 3)
            hint = f" Did you mean {' or '.join(close)}?" if close else ""
            raise UsageError(f"textarena has no game {options.id!r}.{hint}")
        self._id = options.id
        settings = dict(options.settings)
        players = settings.pop("num_players", None)
        self._seat = settings.pop("seat", 0)
        self._opponent = opponent_of(settings.pop("opponent", "self"))
        self._settings = settings
        self._players = self._find_players() if players is None else players
        if not 0 <= self._seat < self._players:
            raise UsageError(f"{self._id} has seats 0 to {self._players - 1}, but the setting seat is {self._seat}.")

    def _find_players(self) -> int:
        """The fewest players that the game accepts: the library does not say it, and games assert it in their reset."""
        for players in range(1, MAX_PLAYERS + 1):
            try:
                self._make().reset(num_players=players, seed=0)
                return players
            except (AssertionError, ValueError):
                continue
        raise UsageError(f"{self._id} starts with none of 1 to {MAX_PLAYERS} players. Pass --set num_players=N.")

    def _make(self) -> Any:
        try:
            return textarena.make(self._id, **self._settings)
        except TypeError as error:
            raise UsageError(f"textarena refuses the settings of {self._id}: {error}") from error

    def task(self, split: str, index: int) -> Json:
        return {"game": self._id, "players": self._players, **super().task(split, index)}

    def open(self, split: str, index: int) -> Game:
        env = self._make()
        env.reset(num_players=self._players, seed=self.seed(split, index))
        return Game(env, self._players, self._seat, self._opponent)


class Game(Episode):
    def __init__(self, env: Any, players: int, seat: int, opponent: Any) -> None:
        self._env = env
        self._players = players
        self._seat = seat
        self._opponent = opponent
        self._inner = env
        # The default wrapper repeats the whole game in each observation, which a conversation already has.
        repeats = type(env) is LLMObservationWrapper or (isinstance(env, Wrapper) and env.is_wrapped_with(LLMObservationWrapper))
        while repeats and isinstance(self._inner, Wrapper):
            self._inner = self._inner.env
        self._done = False
        self._play_opponents()
        self._start = self._observe()

    def messages(self) -> list[Json]:
        return [{"role": "user", "content": self._start}]

    def call(self, name: str, arguments: Json) -> Output:
        action = text_argument(arguments, "action")
        self._done, _ = self._env.step(action=action)
        self._play_opponents()
        if not self._done:
            return Output(self._observe())
        if self._opponent is not None:
            # The last observations are those of the seat, also after a move of another player.
            self._env.state.current_player_id = self._seat
        rewards, info = self._env.close()
        rewards = rewards or {}
        if self._seat not in rewards:
            raise ValueError(f"the game ended without a reward for seat {self._seat}")
        reason = info.get(self._seat, {}).get("reason")
        text = "\n".join(part for part in (self._observe(), str(reason or "The game is over.")) if part)
        metadata = {"rewards": {str(player): float(reward) for player, reward in rewards.items()}, "reason": reason}
        return Output(text, float(rewards[self._seat]), finished=True, metadata=metadata)

    def _play_opponents(self) -> None:
        while self._opponent is not None and not self._done and self._player() != self._seat:
            _, observation = self._env.get_observation()
            self._done, _ = self._env.step(action=self._opponent(observation))

    def _player(self) -> int:
        player: int = self._env.state.current_player_id
        return player

    def _observe(self) -> str:
        """What the player whose turn it is has not seen yet."""
        player, observation = self._inner.get_observation()
        text = observation if isinstance(observation, str) else self._text_of(player, observation)
        turns = self._opponent is None and self._players > 1 and not self._done
        return f"You are player {player} in this turn.\n{text}" if turns else text

    def _text_of(self, player: int, observation: Any) -> str:
        lines = []
        for sender, message, kind in observation:
            if sender == player and kind == ObservationType.PLAYER_ACTION:
                continue
            names = self._env.state.role_mapping
            speaker = "" if sender == GAME_ID else f"[{names.get(sender, f'Player {sender}')}] "
            lines.append(f"{speaker}{message}")
        return "\n".join(lines)


def opponent_of(value: Any) -> Any:
    """None for self play, else a function from an observation to an action. Raises `UsageError`."""
    if value == "self":
        return None
    module, _, attribute = str(value).partition(":")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(f"The opponent {value!r} is neither self nor module:attribute: {error}") from error


def load(options: Options) -> TextArena:
    return TextArena(options)
