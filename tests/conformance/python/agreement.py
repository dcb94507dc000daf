"""Krippendorff's alpha for nominal data by its coincidence matrix (Krippendorff 2011, section C), from tables of units and observers.

Reads `{"tables": [[[label or null, ...], ...], ...]}` from the file in argv[1], one list per unit; writes a list of alphas or nulls.
"""

import json
import sys

import numpy as np


def alpha(units):
    values = sorted({value for unit in units for value in unit if value is not None})
    place = {value: at for at, value in enumerate(values)}
    coincidences = np.zeros((len(values), len(values)))
    for unit in units:
        given = [place[value] for value in unit if value is not None]
        for i, first in enumerate(given):
            for j, second in enumerate(given):
                if i != j:
                    coincidences[first, second] += 1 / (len(given) - 1)
    totals = coincidences.sum(axis=1)
    n = totals.sum()
    observed = coincidences.sum() - np.trace(coincidences)
    expected = (np.outer(totals, totals).sum() - (totals**2).sum()) / (n - 1) if n > 1 else 0
    return None if expected == 0 else 1 - observed / expected


def interval(units, draws, rng):
    paired = [unit for unit in units if sum(value is not None for value in unit) > 1]
    alphas = []
    for _ in range(draws):
        drawn = alpha([paired[at] for at in rng.integers(0, len(paired), len(paired))])
        if drawn is not None:
            alphas.append(drawn)
    return list(np.percentile(alphas, [2.5, 97.5]))


with open(sys.argv[1]) as file:
    data = json.load(file)
rng = np.random.default_rng(7)
print(
    json.dumps(
        {
            "alphas": [alpha(table) for table in data["tables"]],
            "intervals": [interval(table, 2_000, rng) for table in data["large"]],
        }
    )
)
