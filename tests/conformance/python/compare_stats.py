"""Computes the statistics of comparisons with scipy, statsmodels and NumPy; prints them as JSON.

usage: compare_stats.py FILE      FILE is JSON: {"paired": [[D, ...], ...], "welch": [[[A, ...], [B, ...]], ...], "flips": [[LOST, GAINED], ...],
                                  "holm": [[P, ...], ...], "power": [[DIFFERENCE, DEVIATION], ...], "degrees": [N, ...]}
"""

import json
import pathlib
import sys
import warnings

import numpy as np
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower

warnings.simplefilter("ignore")
given = json.loads(pathlib.Path(sys.argv[1]).read_text())


def paired(values):
    found = stats.ttest_rel(values, np.zeros(len(values)))
    low, high = found.confidence_interval(0.95)
    # Sorted, because the interval must not depend on the order of tasks.
    drawn = np.random.RandomState(42).choice(np.sort(values), size=(1000, len(values)))
    return [np.mean(values), low, high, found.pvalue, *np.percentile(drawn.mean(axis=1), [2.5, 97.5])]


def welch(first, other):
    found = stats.ttest_ind(other, first, equal_var=False)
    low, high = found.confidence_interval(0.95)
    a = np.random.RandomState(42).choice(np.sort(first), size=(1000, len(first))).mean(axis=1)
    b = np.random.RandomState(43).choice(np.sort(other), size=(1000, len(other))).mean(axis=1)
    return [np.mean(other) - np.mean(first), low, high, found.pvalue, found.df, *np.percentile(b - a, [2.5, 97.5])]


def flips(lost, gained):
    return mcnemar([[0, lost], [gained, 0]], exact=lost + gained <= 25, correction=True).pvalue


def needed(difference, deviation):
    """The smallest number of pairs with a power of 80 %."""
    power = TTestPower()
    count = max(2, int(power.solve_power(effect_size=abs(difference) / deviation, alpha=0.05, power=0.8)) - 1)
    while power.power(abs(difference) / deviation, count, 0.05) < 0.8:
        count += 1
    return count


def detectable(count):
    """In standard errors."""
    return TTestPower().solve_power(nobs=count, alpha=0.05, power=0.8) * np.sqrt(count)


answer = {
    "paired": [paired(values) for values in given["paired"]],
    "welch": [welch(*pair) for pair in given["welch"]],
    "flips": [flips(*pair) for pair in given["flips"]],
    "holm": [multipletests(ps, method="holm")[1].tolist() for ps in given["holm"]],
    "power": [needed(*pair) for pair in given["power"]],
    "degrees": [detectable(count) for count in given["degrees"]],
}
print(json.dumps(answer, default=float))
