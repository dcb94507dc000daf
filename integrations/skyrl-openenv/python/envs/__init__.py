"""Clients of OpenEnv's first generation (stateful HTTP), by the names that SkyRL's integration imports."""
