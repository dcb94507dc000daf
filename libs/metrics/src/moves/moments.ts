/**
 * Sums over the groups of a side. In a group, `n` rollouts have a reward, of sum `s`; of them `n1` have a property, of sum `s1`. A rollout
 * without a group counts as one group. Variances that are clustered by group need only these sums of products, not the list of groups.
 */
export interface Moments {
  /** Groups with a reward. */
  groups: number;
  n: number;
  s: number;
  n1: number;
  s1: number;
  /** Σ n², Σ n·s, and so on. */
  nn: number;
  ns: number;
  ss: number;
  nn1: number;
  ns1: number;
  sn1: number;
  ss1: number;
  n1n1: number;
  n1s1: number;
  s1s1: number;
}

/** The rollouts of a step, and those before it, by environment. */
export interface Sides {
  now: readonly Moments[];
  before: readonly Moments[];
}

export interface GroupSums {
  n: number;
  s: number;
  n1: number;
  s1: number;
}

export function momentsOf(groups: readonly GroupSums[]): Moments {
  const known = groups.filter(({ n }) => n > 0);
  const total = (of: (group: GroupSums) => number) => known.reduce((sum, group) => sum + of(group), 0);
  const product = (a: keyof GroupSums, b: keyof GroupSums) => total((group) => group[a] * group[b]);
  return {
    groups: known.length,
    n: total(({ n }) => n),
    s: total(({ s }) => s),
    n1: total(({ n1 }) => n1),
    s1: total(({ s1 }) => s1),
    nn: product('n', 'n'),
    ns: product('n', 's'),
    ss: product('s', 's'),
    nn1: product('n', 'n1'),
    ns1: product('n', 's1'),
    sn1: product('s', 'n1'),
    ss1: product('s', 's1'),
    n1n1: product('n1', 'n1'),
    n1s1: product('n1', 's1'),
    s1s1: product('s1', 's1'),
  };
}

export function addMoments(parts: readonly Moments[]): Moments {
  const sum = momentsOf([]);
  for (const part of parts) for (const name of Object.keys(sum) as (keyof Moments)[]) sum[name] += part[name];
  return sum;
}

/** What sums leave as noise of floating point, relative to their parts. */
const NOISE = 1e-12;

/** The sum over groups of the squared linear combination `Σ factor · sum`. Never negative. */
export function squaresOf(moments: Moments, { n = 0, s = 0, n1 = 0, s1 = 0 }: Partial<GroupSums>): number {
  const parts = [
    n * n * moments.nn,
    s * s * moments.ss,
    n1 * n1 * moments.n1n1,
    s1 * s1 * moments.s1s1,
    2 * n * s * moments.ns,
    2 * n * n1 * moments.nn1,
    2 * n * s1 * moments.ns1,
    2 * s * n1 * moments.sn1,
    2 * s * s1 * moments.ss1,
    2 * n1 * s1 * moments.n1s1,
  ];
  const sum = parts.reduce((total, part) => total + part, 0);
  return sum <= NOISE * parts.reduce((total, part) => total + Math.abs(part), 0) ? 0 : sum;
}
