"""Computes the statistics of comparisons with scipy, statsmodels and NumPy; prints them as JSON.

usage: compare_stats.py FILE      FILE is JSON: {"paired": [[D, ...], ...], "welch": [[[A, ...], [B, ...]], ...], "flips": [[LOST, GAINED], ...],
                                  "holm": [[P, ...], ...], "power": [[DIFFERENCE, DEVIATION], ...], "degrees": [N, ...], "rates": [[[SCORED, SUCCESSES], ...], ...],
                                  "pooled": [[[[R, ...], ...], [[R, ...], ...]], ...], "effects": [[[R, 0 or 1, 0 or 1, GROUP], ...], ...],
                                  "shares": [[COUNT, OF, COUNT, OF], ...]}
"""

import json
import pathlib
import sys
import warnings

import numpy as np
import statsmodels.api as sm
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.regression.linear_model import OLS
from statsmodels.stats.power import TTestPower
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

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


def pooled(before, now):
    """Weighted least squares of group means on the side; each group is a list of rewards."""
    groups = [*before, *now]
    side = sm.add_constant(np.array([0.0] * len(before) + [1.0] * len(now)))
    found = sm.WLS([np.mean(group) for group in groups], side, weights=[len(group) for group in groups]).fit()
    low, high = found.conf_int()[1]
    return [found.params[1], low, high, found.pvalues[1], found.df_resid]


def clustered(values, columns, groups):
    """Least squares with errors clustered by group."""
    return sm.OLS(values, np.column_stack(columns).astype(float)).fit(cov_type="cluster", cov_kwds={"groups": groups, "use_correction": True})


def effective(share, count, groups, squares):
    """Effective rollouts of a side: the design effect, and Student's t for its groups (Korn and Graubard 1998)."""
    if share in (0, 1):
        return count
    deff = max(1.0, groups / (groups - 1) * squares / count**2 / (share * (1 - share) / count))
    return count if deff == 1.0 else count / deff * (stats.norm.ppf(0.975) / stats.t.ppf(0.975, groups - 1)) ** 2


def effect(rows):
    """[reward, has the property, is now, group]: coefficient, its part of the change with interval and p value, interval of the share.

    Groups with an even number are of one environment, the others of another.
    """
    reward, having, now, groups = np.array(rows, dtype=float).T
    fit = clustered(reward, [np.ones(len(reward)), having, now], groups)
    coefficient, variance = fit.params[1], fit.cov_params()[1][1]
    # The share of each environment and side; the difference weighs environments by their rollouts.
    cells = [(side, one) for side in (1, 0) for one in (0, 1) if ((now == side) & (groups % 2 == one)).any()]
    members = [(now == side) & (groups % 2 == one) for side, one in cells]
    shift = clustered(having, members, groups)
    weights = np.array([(1 if side else -1) * own.sum() / (now == side).sum() for (side, _), own in zip(cells, members)])
    change, spread = weights @ shift.params, weights @ shift.cov_params() @ weights
    error = np.sqrt(change**2 * variance + coefficient**2 * spread + variance * spread)
    residuals = having - shift.fittedvalues
    sides = []
    for side in (1, 0):
        own = now == side
        sums = [residuals[groups == group].sum() for group in set(groups[own])]
        squares = np.square(sums).sum()
        share = having[own].mean()
        free = max(1, len(sums) - sum(one == side for one, _ in cells))
        sides.append((squares / own.sum() ** 2, free, share, effective(share, own.sum(), len(sums), squares)))
    df = sum(side[0] for side in sides) ** 2 / sum(side[0] ** 2 / side[1] for side in sides)
    student = stats.t(df)
    value = change * coefficient
    half = student.ppf(0.975) * error
    (_, _, b, of_b), (_, _, a, of_a) = sides
    low_a, high_a = proportion_confint(a * of_a, of_a, method="wilson")
    low_b, high_b = proportion_confint(b * of_b, of_b, method="wilson")
    newcombe = [b - a - np.hypot(b - low_b, high_a - a), b - a + np.hypot(high_b - b, a - low_a)]
    return [coefficient, value, value - half, value + half, 2 * student.sf(abs(value) / error), *newcombe]


def shares(first, of_first, other, of_other):
    low, high = confint_proportions_2indep(other, of_other, first, of_first, method="newcomb", compare="diff")
    return [low, high, *proportion_confint(first, of_first, method="wilson")]


answer = {
    "pooled": [pooled(*pair) for pair in given["pooled"]],
    "effects": [effect(rows) for rows in given["effects"]],
    "shares": [shares(*row) for row in given["shares"]],
    "paired": [paired(values) for values in given["paired"]],
    "welch": [welch(*pair) for pair in given["welch"]],
    "flips": [flips(*pair) for pair in given["flips"]],
    "holm": [multipletests(ps, method="holm")[1].tolist() for ps in given["holm"]],
    "power": [needed(*pair) for pair in given["power"]],
    "degrees": [detectable(count) for count in given["degrees"]],
    "rates": [rate(clusters) for clusters in given["rates"]],
}
print(json.dumps(answer, default=float))
