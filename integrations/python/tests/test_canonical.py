from __future__ import annotations

import pytest

from palestra.canonical import canonical_json, sha256_of


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1"),
        (1.0, "1"),
        (-0.0, "0"),
        (0.1, "0.1"),
        (1e21, "1e+21"),
        (1e20, "100000000000000000000"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (1.5e-10, "1.5e-10"),
        (5e-324, "5e-324"),
        (12345678901234567890, "12345678901234567000"),
        (float("nan"), "null"),
        (10**400, "null"),
        (True, "true"),
        ({"b": [1, None], "a": "\u2028\x00\ud800"}, '{"a":"\u2028\ufffd","b":[1,null]}'),
        # By UTF-16 code units, in which the pair of the smiley comes first.
        ({"\uffff": 1, "\U0001f600": 2}, '{"\U0001f600":2,"\uffff":1}'),
    ],
)
def test_canonical_json(value: object, text: str) -> None:
    assert canonical_json(value) == text


def test_equal_tasks_have_one_hash() -> None:
    assert sha256_of({"a": 1, "b": 2.0}) == sha256_of({"b": 2, "a": 1.0})
    with pytest.raises(TypeError):
        canonical_json({1, 2})
