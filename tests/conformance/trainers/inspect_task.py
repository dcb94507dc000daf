"""Evaluations of Inspect with the scripted policy behind an OpenAI-compatible URL: `ENVIRONMENT SPLIT EPOCHS [ENDPOINT [LIMITS]]`. The environment
may be the file of a task, which has its own split. LIMITS: arguments of `eval` as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from typing import Any

import policy


def main(environment: str, split: str, epochs: str, endpoint: str | None = None, limits: str = "{}") -> None:
    import palestra.inspect as adapter
    from palestra import client_of
    from inspect_ai import eval
    from inspect_ai.model import GenerateConfig, get_model

    client_of().transport._retry_for_s = 1.0  # Not the two minutes of a restart.
    with policy.endpoint() as url, tempfile.TemporaryDirectory() as folder:
        config = GenerateConfig(max_retries=0, timeout=20)
        model = get_model("openai/scripted", base_url=endpoint or url, api_key="none", responses_api=False, config=config)
        task: Any
        if environment.endswith(".py"):
            # Inspect looks for it in the working directory.
            os.chdir(os.path.dirname(environment))
            task = os.path.basename(environment)
        else:
            task = adapter.palestra_task(environment, split, epochs=int(epochs), fail_on_error=False)
        options = {"display": "none", "log_dir": folder, "limit": 2, "max_samples": 1, **json.loads(limits)}
        [log] = eval(task, model=model, score_display=False, **options)
        # The samples are read from the folder.
        samples = [
            {
                "id": sample.id,
                "epoch": sample.epoch,
                "score": number(sample.scores["palestra_scorer"].value) if sample.scores else None,
                "error": None if sample.error is None else sample.error.message,
                "roles": [message.role for message in sample.messages],
            }
            for sample in sorted(log.samples or [], key=lambda one: (str(one.id), one.epoch))
        ]
        metrics = {} if log.results is None else {name: number(metric.value) for name, metric in log.results.scores[0].metrics.items()}
    print(json.dumps({"status": log.status, "samples": samples, "metrics": metrics}))


def number(value: Any) -> Any:
    """None for NaN, which is the value of an unscored sample, and of the mean of none."""
    return None if value != value else value


main(*sys.argv[1:])
