"""`python -m palestra.serve SPEC`: serves the environments of a Python library as a server of the Open Reward Standard.

`SPEC` is `reasoning-gym:NAME`, `textarena:ID`, `gem:ID`, `skyrl-gym:ID`, `verifiers:ID` or `inspect:TASK`. docs/serve-python.md is the manual.
`palestra serve-python` and `palestra env push` start this module.
"""
