"""inspect eval whodunit.py --model openai/gpt-5-mini, with PALESTRA_URL and PALESTRA_API_KEY."""

from inspect_ai import Task, task
from palestra.inspect import palestra_task


@task
def whodunit() -> Task:
    return palestra_task("palestra/whodunit", "test", max_turns=12, run="whodunit-baseline")
