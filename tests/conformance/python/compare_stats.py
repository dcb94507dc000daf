"""Computes the statistics of comparisons with scipy, statsmodels and NumPy; prints them as JSON.

usage: compare_stats.py FILE      FILE is JSON: {"paired": [[D, ...], ...], "welch": [[[A, ...], [B, ...]], ...], "flips": [[LOST, GAINED], ...],
                                  "holm": [[P, ...], ...], "power": [[DIFFERENCE, DEVIATION], ...], "degrees": [N, ...], "rates": [[[SCORED, SUCCESSES], ...], ...]}
"""

import json
import pathlib
import sys
import warnings

import numpy as np
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.regression.linear_model import OLS
from statsmodels.stats.power import TTestPower
from statsmodels.stats.proportion import proportion_confint

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


def rate(clusters):
    """Rate, effective samples and Wilson's interval; the variance is that of a mean with errors clustered by visit."""
    solved = np.concatenate([np.r_[np.ones(successes), np.zeros(scored - successes)] for scored, successes in clusters])
    visit = np.concatenate([np.full(scored, at) for at, (scored, _) in enumerate(clusters)])
    mean, count = solved.mean(), len(solved)
    effect = 1.0
    if 0 < mean < 1 and len(set(visit)) > 1:
        fit = OLS(solved, np.ones(count)).fit(cov_type="cluster", cov_kwds={"groups": visit, "use_correction": True})
        effect = max(1.0, fit.bse[0] ** 2 / (mean * (1 - mean) / count))
    effective = count / effect
    return [mean, effective, *proportion_confint(mean * effective, effective, method="wilson")]


answer = {
    "paired": [paired(values) for values in given["paired"]],
    "welch": [welch(*pair) for pair in given["welch"]],
    "flips": [flips(*pair) for pair in given["flips"]],
    "holm": [multipletests(ps, method="holm")[1].tolist() for ps in given["holm"]],
    "power": [needed(*pair) for pair in given["power"]],
    "degrees": [detectable(count) for count in given["degrees"]],
    "rates": [rate(clusters) for clusters in given["rates"]],
}
print(json.dumps(answer, default=float))
