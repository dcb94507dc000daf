"""A player of palestra/whodunit. It reads what the tools answer; what to do with it is learned."""

import re

MAX_TURNS = 12


class Player:
    """A chat function of one episode. `choices`: its decisions, for the policy to learn from."""

    def __init__(self, policy, random):
        self.choices = []
        self._policy, self._random = policy, random
        self._asked = None
        self._searched, self._interviewed, self._alibis = {}, set(), {}
        self._washed = {}

    def __call__(self, messages, _tools):
        text = messages[-1]["content"]
        if self._asked is None:
            self._read_case(text)
        else:
            self._read_answer(text)
        self._asked = self._next_call()
        return self._asked

    def _read_case(self, text):
        self._suspects = names(r"^Suspects: (.*)$", text)
        self._rooms = names(r"^Rooms: (.*)$", text)
        self._liars = names(r"murderer or not: (.*?)\. All others", text)
        wound = re.search(r"something (blunt|sharp)|a (cord) of", text)
        kinds = [kind.split(": ") for kind in re.search(r"^Weapons in the house: (.*)$", text, re.M)[1].split("; ")]
        self._fits = {weapon: kind.startswith(wound[1] or wound[2]) for kind, weapons in kinds for weapon in weapons.split(", ")}

    def _read_answer(self, text):
        tool, arguments = self._asked
        if tool == "search":
            self._searched[arguments["room"]] = "fresh blood" in text
            self._washed.update({weapon: "washed" in state for weapon, state in re.findall(r"You find the (.*?); it (.*?)\.", text)})
        elif tool == "interview":
            self._interviewed.add(arguments["suspect"])
        elif "allows no more" not in text:
            self._alibis[arguments["suspect"]] = "is true" in text

    def _next_call(self):
        """A tool and its arguments. The same question twice is no option, so the policy need not learn to avoid it."""
        blood = any(self._searched.values())
        weapon = any(washed and self._fits[name] for name, washed in self._washed.items())
        liar = any(map(self._is_culprit, self._suspects))
        options = [
            ("accuse", None, {"accuse": 1, "accuse, blood": blood, "accuse, weapon": weapon, "accuse, lie": liar}),
            *(
                ("search", {"room": room}, {"search": 1, "search, all found": blood and weapon})
                for room in self._rooms
                if room not in self._searched
            ),
            *(
                ("interview", {"suspect": suspect}, {"interview": 1})
                for suspect in self._suspects
                if suspect not in self._interviewed
            ),
            *(
                ("check_alibi", {"suspect": suspect}, {"check": 1, "check, known liar": suspect in self._liars, "check, lie": liar})
                for suspect in self._suspects
                if suspect not in self._alibis and len(self._alibis) < 2
            ),
        ]
        tool, arguments, _ = self._choose(options)
        return tool, self._accusation() if arguments is None else arguments

    def _accusation(self):
        suspects = [
            (name, {"lied": self._is_culprit(name), "honest": self._alibis.get(name, False), "known liar": name in self._liars})
            for name in self._suspects
        ]
        weapons = [
            (name, {"fits": fits, "washed": self._washed.get(name, False), "both": fits and self._washed.get(name, False)})
            for name, fits in self._fits.items()
        ]
        rooms = [
            (name, {"blood": self._searched.get(name, False), "no blood": not self._searched.get(name, True)}) for name in self._rooms
        ]
        chosen = {"suspect": suspects, "weapon": weapons, "room": rooms}
        return {part: self._choose(options)[0] for part, options in chosen.items()}

    def _is_culprit(self, suspect):
        return suspect not in self._liars and not self._alibis.get(suspect, True)

    def _choose(self, options):
        choice = self._policy.choose([features for *_, features in options], self._random)
        self.choices.append(choice)
        return options[choice.taken]


def names(pattern, text):
    return re.search(pattern, text, re.M)[1].split(", ")
