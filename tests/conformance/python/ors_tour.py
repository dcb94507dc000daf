"""The same by the client of ors-sdk, which names the environment in the path and sends neither deployment nor version.

usage: ors_tour.py '{"base_url", "name", "split", "index", "calls": [[tool, input], ...], "secrets"}'
"""

import json
import sys

from ors.client import ORS

given = json.loads(sys.argv[1])
with ORS(base_url=given["base_url"], api_key=given.get("api_key")) as client:
    environment = client.environments.get(name=given["name"])
    tasks = environment.list_tasks(given["split"])
    seen = {
        "splits": environment.list_splits(),
        "num_tasks": environment.num_tasks(given["split"]),
        "task": environment.get_task(given["split"], given["index"]).task_spec,
        "tools": [tool.name for tool in environment.list_tools()],
        "listed": len(tasks),
        "results": [],
    }
    with environment.session(task=tasks[given["index"]], secrets=given.get("secrets")) as session:
        seen["prompt"] = [block.text for block in session.get_prompt()]
        seen["session_tools"] = [tool.name for tool in session.list_tools()]
        for name, arguments in given["calls"]:
            try:
                output = session.call_tool(name, arguments)
                seen["results"].append(
                    {"text": "".join(block.text for block in output.blocks), "reward": output.reward, "finished": output.finished}
                )
            except Exception as error:
                seen["results"].append({"error": type(error).__name__, "text": str(error)})
print(json.dumps(seen))
