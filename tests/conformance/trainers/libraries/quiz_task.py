"""An Inspect task with a tool, for serve-python.spec.ts."""

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import exact
from inspect_ai.solver import generate, system_message, use_tools
from inspect_ai.tool import tool

CAPITALS = {"France": "Paris", "Spain": "Madrid", "Peru": "Lima"}


@tool
def capital():
    async def execute(country: str) -> str:
        """Looks up the capital of a country.

        Args:
            country: Name of the country.
        """
        return CAPITALS[country]

    return execute


@task
def quiz():
    samples = [Sample(input=f"What is the capital of {country}?", target=name) for country, name in CAPITALS.items()]
    return Task(dataset=MemoryDataset(samples), solver=[system_message("Answer in one word."), use_tools(capital()), generate()], scorer=exact())
