"""A taskset of verifiers 0.4 with a tool, for serve-python.spec.ts."""

import verifiers.v1 as vf

CAPITALS = {"France": "Paris", "Spain": "Madrid", "Peru": "Lima"}


class Atlas(vf.Toolset):
    @vf.tool
    async def capital(self, country: str) -> str:
        """Looks up the capital of a country."""
        return CAPITALS[country]


class QuizData(vf.TaskData):
    answer: str


class Quiz(vf.Task[QuizData, vf.State, vf.TaskConfig]):
    @vf.reward
    async def exact(self, task, trace) -> float:
        return float(trace.last_reply == task.answer)

    @classmethod
    def toolsets(cls, config):
        return [Atlas(vf.ToolsetConfig())]


class QuizTaskset(vf.Taskset[Quiz, vf.TasksetConfig]):
    def load(self):
        for country, capital in CAPITALS.items():
            yield Quiz(QuizData(prompt=f"What is the capital of {country}?", answer=capital), self.config.task)


__all__ = ["QuizTaskset"]
