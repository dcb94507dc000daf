"""The echo of apps/environments for the SDK's own Python server: same tasks, same tool, same reward."""

import sys

from openreward.environments import Environment, Server, Split, TextBlock, ToolOutput, tool
from pydantic import BaseModel


class Text(BaseModel):
    text: str


class Echo(Environment):
    @classmethod
    def list_splits(cls):
        return [Split(name="train", type="train")]

    @classmethod
    def list_tasks(cls, split: str):
        return [{"id": index} for index in range(1000)]

    def get_prompt(self):
        return [TextBlock(text=f"task {self.task_spec['id']}")]

    @tool
    async def echo(self, params: Text) -> ToolOutput:
        """Returns the text."""
        return ToolOutput(blocks=[TextBlock(text=params.text)], reward=0.1, finished=False)


if __name__ == "__main__":
    import uvicorn

    # As Server.run() does it, but silent: writing a log line a request would only slow the other side of the comparison.
    uvicorn.run(Server([Echo]).app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error", access_log=False, timeout_keep_alive=60)
