"""Plays `work` three times in one session, the second time until it is told to end, and uploads each result as it comes.

usage: long_episode.py DEPLOYMENT
"""

import json
import sys

from openreward import OpenReward, ToolResult

deployment = sys.argv[1]
client = OpenReward()
rollout = client.rollout.create(run_name="long", rollout_name="long-0", environment=deployment)
results = []
with client.environments.get(deployment).session(split="train", index=0) as session:
    for wait in (False, True, False):
        output = session.call_tool("work", {"wait": wait})
        results.append({"text": output.blocks[0].text, "reward": output.reward})
        rollout.log(ToolResult(content=output.blocks[0].text, call_id=str(len(results))), reward=output.reward)
client.rollout.close()
print(json.dumps({"results": results, "rollout": rollout.event_id}))
