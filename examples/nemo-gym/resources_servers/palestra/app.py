"""NeMo Gym starts a program for every server. This one has nothing to do: Palestra answers."""

import signal

signal.pause()
