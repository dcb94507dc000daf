"""Canonical JSON after RFC 8785, as the service hashes tasks (libs/rollouts/src/json/canonical-json.ts)."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any


def canonical_json(value: Any) -> str:
    """Members sorted by UTF-16 code units, no white space, numbers as ECMAScript prints the double; NaN and infinities become null.

    Raises TypeError for a value that JSON does not have.
    """
    if value is None or isinstance(value, bool) or isinstance(value, str):
        return _text(value) if isinstance(value, str) else json.dumps(value)
    if isinstance(value, (int, float)):
        return _number(value)
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(canonical_json, value))}]"
    if isinstance(value, dict):
        members = sorted(((str(key), item) for key, item in value.items()), key=lambda member: _utf16(member[0]))
        return "{" + ",".join(f"{_text(key)}:{canonical_json(item)}" for key, item in members) + "}"
    raise TypeError(f"{type(value).__name__} is not a JSON value")


def number_of(value: Any) -> Any:
    """The number in a scalar of numpy or torch, for `default` of `json.dumps`. Raises TypeError for any other value."""
    if getattr(value, "ndim", None) != 0:
        raise TypeError(f"{type(value).__name__} is not a JSON value")
    return value.item()


def sha256_of(value: Any) -> str:
    """SHA-256 of the canonical JSON, in hex."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")


def _text(text: str) -> str:
    # The service removes NUL and replaces lone surrogates, because its store has neither.
    clean = text.replace("\x00", "").encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return json.dumps(clean, ensure_ascii=False)


def _number(value: float) -> str:
    try:
        number = float(value)
    except OverflowError:
        return "null"
    if not math.isfinite(number):
        return "null"
    if number == 0:
        return "0"
    sign = "-" if number < 0 else ""
    mantissa, _, exponent = repr(abs(number)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    # The value is 0.DIGITS times ten to the power of `point`.
    point = int(exponent or 0) + len(whole) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    return sign + _ecmascript(digits, point)


def _ecmascript(digits: str, point: int) -> str:
    """Number::toString of ECMAScript; `digits` without zeros at the ends, the value is 0.DIGITS * 10 ** point."""
    count = len(digits)
    if count <= point <= 21:
        return digits + "0" * (point - count)
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"0.{'0' * -point}{digits}"
    power = point - 1
    mantissa = digits[0] if count == 1 else f"{digits[0]}.{digits[1:]}"
    return f"{mantissa}e{'+' if power > 0 else '-'}{abs(power)}"
