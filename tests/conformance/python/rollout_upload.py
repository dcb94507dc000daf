"""Uploads rollouts with every kind of event the SDK has, hostile values included; prints the ids and what was sent.

usage: rollout_upload.py RUN_NAME ENVIRONMENT
"""

import json
import sys

from openreward import (
    AssistantMessage,
    OpenReward,
    ReasoningItem,
    RolloutInfo,
    RunInfo,
    SystemMessage,
    ToolCall,
    ToolResult,
    UserMessage,
)

run_name, environment = sys.argv[1:3]
client = OpenReward()

every = client.rollout.create(
    run_name=run_name,
    rollout_name="every-type",
    environment=environment,
    split="train",
    metadata={"step": 3, "loss": float("nan"), "best": float("inf"), "nul\x00key": "nul\x00value"},
    task_spec={"id": 7, "nested": {"list": [1, None, 2.5]}},
    run_info=RunInfo(model_name="policy-7b", run_type="train"),
)
messages = [
    (SystemMessage(content="be\x00 brief"), {}),
    (UserMessage(content="Wer war es? \u00fc \u4f60 \U0001f600 \x1b[31mred\x1b[0m"), {"metadata": {"turn": 0}}),
    (ReasoningItem(content="think", summary="short", content_reference="reasoning:1"), {}),
    (AssistantMessage(content="I will look."), {}),
    (ToolCall(name="search", content='{"place": "attic"}', call_id="c1"), {}),
    (ToolResult(content="", call_id="c1"), {"reward": 0.25, "rollout_info": RolloutInfo(task_index=7, current_step=3)}),
    (ToolResult(content="lone \udcff surrogate", call_id="c1"), {"reward": float("inf")}),
    (ToolResult(content="not a number", call_id="c1"), {"reward": float("nan"), "metadata": {"loss": float("-inf")}}),
    (AssistantMessage(content="It was the gardener."), {"reward": 1.0, "is_finished": True}),
]
for message, extra in messages:
    every.log(message, **extra)

many = client.rollout.create(run_name=run_name, rollout_name="three-hundred", environment=environment)
for index in range(300):
    many.log(UserMessage(content=f"message {index}"), reward=0.5 if index == 299 else None, is_finished=index == 299)

wide = client.rollout.create(run_name=run_name, rollout_name="wide", environment=environment)
wide.log(UserMessage(content="\u00e9" * 1_500_000), is_finished=True)

client.rollout.close()
print(json.dumps({"every": every.event_id, "many": many.event_id, "wide": wide.event_id}))
