"""The official client plays `guess` through the service that OPENREWARD_URL names. Prints the reward.

The argument is the largest number: 100 for the environment of README.md, 999 for that of `palestra env init`.
"""

import sys

from openreward import OpenReward

client = OpenReward()
environment = client.environments.get("guess")
with environment.session(split="train", index=3) as session:
    low, high = 0, int(sys.argv[1])
    finished = False
    while not finished:
        number = (low + high) // 2
        output = session.call_tool("guess", {"number": number})
        finished = output.finished
        if output.blocks[0].text.startswith("Higher"):
            low = number + 1
        else:
            high = number - 1
    print(output.reward)
