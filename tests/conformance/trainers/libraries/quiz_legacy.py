"""Environments of verifiers before 0.4, for serve-python.spec.ts. `kind`: which one."""

import verifiers as vf
from datasets import Dataset

CAPITALS = {"France": "Paris", "Spain": "Madrid", "Peru": "Lima"}
ROWS = [{"question": f"What is the capital of {country}?", "answer": capital} for country, capital in CAPITALS.items()]


def capital(country: str) -> str:
    """Looks up the capital of a country.

    Args:
        country: its name
    """
    return CAPITALS[country]


def exact(completion, answer) -> float:
    return float(completion[-1]["content"] == answer)


async def short(completion, **_) -> float:
    return float(len(completion[-1]["content"] or "") < 10)


def of_group(completions, **_) -> list[float]:
    return [0.0 for _ in completions]


class Ledger(vf.StatefulToolEnv):
    """Its tool has an argument that the policy does not see."""

    def __init__(self, **kwargs):
        super().__init__(tools=[], **kwargs)
        self.add_tool(self.note, args_to_skip=["book"])

    async def setup_state(self, state, **kwargs):
        state["book"] = []
        return state

    def update_tool_args(self, tool_name, tool_args, messages, state, **kwargs):
        return {**tool_args, "book": state["book"]}

    def note(self, text: str, book: list) -> str:
        """Writes a note."""
        if text == "tear":
            raise ValueError("the page is torn")
        book.append(text)
        return f"{len(book)} notes"


async def notes(state) -> float:
    return float(len(state["book"]))


class Countdown(vf.MultiTurnEnv):
    """Ends when the policy says 0."""

    async def env_response(self, messages, state, **kwargs):
        said = messages[-1]["content"]
        if said == "raise":
            raise vf.Error("the clock has stopped")
        if said == "0":
            state["final_env_response"] = [{"role": "user", "content": "Lift off."}]
            return state["final_env_response"]
        return [{"role": "user", "content": f"I heard {said}."}]


async def lifted(state) -> float:
    if any("wrong" in str(step["completion"]) for step in state["trajectory"]):
        raise RuntimeError("the grader has no data")
    return float(state["stop_condition"] == "has_final_env_response")


def load_environment(kind: str = "tools"):
    dataset = Dataset.from_list(ROWS)
    scored = vf.Rubric(funcs=[exact, short], weights=[1.0, 0.5])
    if kind == "tools":
        return vf.ToolEnv(tools=[capital], dataset=dataset, eval_dataset=dataset.select([2]), rubric=scored, max_turns=4)
    if kind == "single":
        return vf.SingleTurnEnv(dataset=dataset, system_prompt="One word.", rubric=scored)
    if kind == "ledger":
        return Ledger(dataset=dataset, rubric=vf.Rubric(funcs=[notes]))
    if kind == "countdown":
        return Countdown(dataset=dataset, rubric=vf.Rubric(funcs=[lifted]), max_turns=5)
    if kind == "group":
        return vf.EnvGroup([load_environment("single"), load_environment("tools")], env_names=["single", "tools"])
    if kind == "unscored":
        return vf.SingleTurnEnv(dataset=dataset)
    if kind == "relative":
        return vf.SingleTurnEnv(dataset=dataset, rubric=vf.Rubric(funcs=[of_group]))
    if kind == "judged":
        return vf.SingleTurnEnv(dataset=dataset, rubric=vf.JudgeRubric())
    return vf.PythonEnv(dataset=dataset)
