"""Writes tasks as Parquet one session after the other, as trainers' own scripts do it; the baseline of the export.

usage: sequential_prepare_tasks.py ENVIRONMENT SPLIT OUTPUT [MAX_TASKS]
"""

import json
import sys

import pyarrow as pa
import pyarrow.parquet as pq
from openreward import OpenReward

SYSTEM = (
    "You are an agent that takes actions in a stateful environment to achieve a goal.\n\n# Tools\n\n"
    "You may call one or more functions to assist with the user query.\n\n"
    "You are provided with function signatures within <tools></tools> XML tags:\n<tools>\n{tools}\n</tools>\n\n"
    "For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:\n"
    '<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>'
)


def prompt_of(session) -> str:
    text = "".join(block.text for block in session.get_prompt() if block.type == "text")
    tools = "\n".join(
        json.dumps({"name": tool.name, "arguments_schema": tool.input_schema, "description": tool.description})
        for tool in session.list_tools()
    )
    system = SYSTEM.replace("{tools}", tools)
    return json.dumps([{"role": "system", "content": system}, {"role": "user", "content": text}])


def main() -> None:
    name, split, output = sys.argv[1:4]
    environment = OpenReward().environments.get(name)
    count = environment.num_tasks(split)
    if len(sys.argv) > 4:
        count = min(count, int(sys.argv[4]))
    rows = []
    for index in range(count):
        with environment.session(split=split, index=index) as session:
            rows.append(
                {
                    "prompt": prompt_of(session),
                    "env_class": "openreward",
                    "env_name": name,
                    "split": split,
                    "task_index": index,
                }
            )
    pq.write_table(pa.Table.from_pylist(rows), output)


if __name__ == "__main__":
    main()
