"""Trainers that no package index has, as far as adapters use them: modules with the names, signatures and fields of their sources."""

from __future__ import annotations

import importlib.machinery
import sys
import tempfile
import types
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

_installed = Path(tempfile.mkdtemp(prefix="palestra-shapes-"))
sys.path.append(str(_installed))


def install(distribution: str, version: str, modules: dict[str, dict[str, Any]]) -> None:
    """Makes `modules` importable, and the version known to importlib.metadata."""
    info = _installed / f"{distribution}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
    for name, members in modules.items():
        for package in _packages(name):
            sys.modules.setdefault(package, _module(package, package=True))
        sys.modules[name] = sys.modules.get(name) or _module(name)
        sys.modules[name].__dict__.update(members)


def _packages(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:length]) for length in range(1, len(parts))]


def _module(name: str, package: bool = False) -> types.ModuleType:
    module = types.ModuleType(name)
    module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=package)
    if package:
        module.__path__ = []
    return module


class Status(Enum):
    PENDING = "pending"
    COMPLETED = "completed"
    TRUNCATED = "truncated"
    ABORTED = "aborted"
    FAILED = "failed"


@dataclass
class _CommonSample:
    """The fields that slime/utils/types.py (0.3.1, 624b824a8) and miles/utils/types.py (0.1.0, 31f1ca961) share."""

    group_index: int | None = None
    index: int | None = None
    rollout_id: int | None = None
    prompt: Any = ""
    tokens: list[int] = field(default_factory=list)
    multimodal_inputs: dict[str, Any] | None = None
    multimodal_train_inputs: dict[str, Any] | None = None
    response: str = ""
    response_length: int = 0
    label: str | None = None
    reward: Any = None
    loss_mask: list[int] | None = None
    weight_versions: list[str] = field(default_factory=list)
    rollout_log_probs: list[float] | None = None
    rollout_routed_experts: Any = None
    remove_sample: bool = False
    teacher_log_probs: list[float] | None = None
    status: Status = Status.PENDING
    metadata: dict[str, Any] = field(default_factory=dict)
    generate_function_path: str | None = None
    train_metadata: dict[str, Any] | None = None
    non_generation_time: float = 0.0

    def get_reward_value(self, args: Any) -> float:
        return self.reward if not args.reward_key else self.reward[args.reward_key]


@dataclass
class SlimeSample(_CommonSample):
    multimodal_train_input_id: str | None = None
    apply_chat_template_kwargs: dict[str, Any] = field(default_factory=dict)
    rollout_top_p_token_ids: Any = None
    rollout_top_p_token_offsets: Any = None
    custom_rm_path: str | None = None
    session_id: str | None = None

    Status = Status


@dataclass
class MilesSample(_CommonSample):
    rollout_indexer_topk: Any = None
    opd_reverse_kl: list[float] | None = None
    adapter: Any = None
    reward_spec: Any = None
    routing_key: str | None = None

    Status = Status
