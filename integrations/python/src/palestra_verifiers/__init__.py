"""Hosted environments as a taskset of verifiers 0.4 and prime-rl: `id = "palestra-verifiers"` (docs/trainers/verifiers.md).

verifiers maps the id of a plugin to the name of a module, which is why this is no part of `palestra`.
"""

from palestra.versions import require

require("verifiers", ">=0.4.0,<0.5", extra="verifiers")

from palestra_verifiers.env import PalestraEnv, PalestraEnvConfig, PalestraHarness  # noqa: E402
from palestra_verifiers.taskset import PalestraConfig, PalestraData, PalestraTask, PalestraTaskConfig, PalestraTaskset  # noqa: E402

__all__ = [
    "PalestraConfig",
    "PalestraData",
    "PalestraEnv",
    "PalestraEnvConfig",
    "PalestraHarness",
    "PalestraTask",
    "PalestraTaskConfig",
    "PalestraTaskset",
]
