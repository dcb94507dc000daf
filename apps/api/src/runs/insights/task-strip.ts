/** A group of a task; step -1 = not known. */
export interface Attempt {
  step: number;
  scored: number;
  successes: number;
}

/** The solve rates of a task by step, from its groups in any order. A step is solved when at least half of its scored rollouts succeed. Steps without a score are skipped. */
export function taskStrip(attempts: readonly Attempt[]) {
  const bySteps = new Map<number, { scored: number; successes: number }>();
  for (const { step, scored, successes } of attempts.filter((one) => one.step >= 0)) {
    const before = bySteps.get(step) ?? { scored: 0, successes: 0 };
    bySteps.set(step, { scored: before.scored + scored, successes: before.successes + successes });
  }
  const points = [...bySteps].map(([step, sums]) => ({ step, ...sums })).toSorted((a, b) => a.step - b.step);
  const known = points.filter(({ scored }) => scored > 0).map((point) => ({ ...point, solved: point.successes * 2 >= point.scored }));
  const lastSolved = known.findLastIndex(({ solved }) => solved);
  const now = points.at(-1);
  return {
    step: points.map(({ step }) => step),
    solve: points.map(({ scored, successes }) => (scored === 0 ? null : successes / scored)),
    scored: points.map(({ scored }) => scored),
    first_solved: known.find(({ successes }) => successes > 0)?.step ?? null,
    flips: known.filter(({ solved }, at) => at > 0 && solved !== known[at - 1]!.solved).length,
    regressed_at: lastSolved < 0 ? null : (known[lastSolved + 1]?.step ?? null),
    now: now ? { step: now.step, successes: now.successes, scored: now.scored } : null,
  };
}
