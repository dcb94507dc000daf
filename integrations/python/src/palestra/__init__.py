"""Client of Palestra, and of other servers of the Open Reward Standard, for trainers.

One play loop for every model and every session, tasks as rows for every trainer, and a recorder that loses no rollout. The names of this
module are the public interface; every other module may change. README.md is the tutorial.
"""

import sys

# Before any other import: the rest of the package does not compile on older versions.
if sys.version_info < (3, 10):
    raise ImportError(
        "palestra needs Python 3.10 or newer; this is Python %d.%d. Install it with a newer interpreter, for example "
        "`python3.12 -m pip install palestra`." % sys.version_info[:2]
    )

from palestra._version import __version__  # noqa: E402
from palestra.chat import OpenAIChat  # noqa: E402
from palestra.client import Client, Session  # noqa: E402
from palestra.episode import Call, Episode, Event, StopEpisode, Turn  # noqa: E402
from palestra.failures import (  # noqa: E402
    EnvironmentFailure,
    Failure,
    InfrastructureFailure,
    PolicyFailure,
    failure_of,
)
from palestra.messages import Reply, ToolOutput, ToolSpec  # noqa: E402
from palestra.places import session_of, task_of  # noqa: E402
from palestra.play import play, play_sync  # noqa: E402
from palestra.record import Recorder, Rollout  # noqa: E402
from palestra.rows import FORMATS, rows, write_rows  # noqa: E402
from palestra.runs import client_of, recorder_of  # noqa: E402
from palestra.sidecar import TokenRecord, read_tokens  # noqa: E402
from palestra.steps import Opened, Step, Steps  # noqa: E402
from palestra.tasks import TaskRef, iter_tasks  # noqa: E402
from palestra.upload import UploadReport  # noqa: E402

__all__ = [
    "Call",
    "Client",
    "EnvironmentFailure",
    "Episode",
    "Event",
    "FORMATS",
    "Failure",
    "InfrastructureFailure",
    "OpenAIChat",
    "Opened",
    "PolicyFailure",
    "Recorder",
    "Reply",
    "Rollout",
    "Session",
    "Step",
    "Steps",
    "StopEpisode",
    "TaskRef",
    "TokenRecord",
    "ToolOutput",
    "ToolSpec",
    "Turn",
    "UploadReport",
    "client_of",
    "failure_of",
    "iter_tasks",
    "play",
    "play_sync",
    "read_tokens",
    "recorder_of",
    "rows",
    "session_of",
    "task_of",
    "write_rows",
    "__version__",
]
