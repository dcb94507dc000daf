"""Addresses and key of the service, from arguments or the variables that the official client reads."""

from __future__ import annotations

import os
from dataclasses import dataclass

DEFAULT_URL = "http://127.0.0.1:8080"


@dataclass(frozen=True)
class Settings:
    """`url`: origin of the API. `session_url`: origin of sessions, the same on a Palestra server. Neither ends with a slash."""

    url: str
    session_url: str
    api_key: str | None


def settings(url: str | None = None, api_key: str | None = None, session_url: str | None = None) -> Settings:
    """Arguments first, then PALESTRA_URL and PALESTRA_API_KEY, then OPENREWARD_API_URL, OPENREWARD_SESSION_URL, OPENREWARD_URL and
    OPENREWARD_API_KEY, then the address of a local server.
    """
    env = os.environ
    api = url or env.get("PALESTRA_URL") or env.get("OPENREWARD_API_URL") or env.get("OPENREWARD_URL") or DEFAULT_URL
    # A given address serves both planes, and the variables do not count.
    session = session_url or url or env.get("PALESTRA_URL") or env.get("OPENREWARD_SESSION_URL") or api
    key = api_key or env.get("PALESTRA_API_KEY") or env.get("OPENREWARD_API_KEY") or None
    return Settings(_origin(api), _origin(session), key)


def _origin(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"{url!r} is no address of a server. Expected http://host:port, in PALESTRA_URL or as `url`.")
    return url.rstrip("/")
