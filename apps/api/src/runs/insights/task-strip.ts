/** What a task's strip is made of: groups of the task, in any order; step -1 = not known. */
export interface Attempt {
  step: number;
  scored: number;
  successes: number;
}

/** How a task went (dashboard.md 5.6). Solved: at least half of the scored rollouts of a step succeed. Steps without a score say nothing. */
export function taskStrip(attempts: readonly Attempt[]) {
  const bySteps = new Map<number, { scored: number; successes: number }>();
  for (const { step, scored, successes } of attempts.filter((one) => one.step >= 0)) {
    const before = bySteps.get(step) ?? { scored: 0, successes: 0 };
    bySteps.set(step, { scored: before.scored + scored, successes: before.successes + successes });
  }
  const points = [...bySteps].map(([step, sums]) => ({ step, ...sums })).toSorted((a, b) => a.step - b.step);
  const told = points.filter(({ scored }) => scored > 0).map((point) => ({ ...point, solved: point.successes * 2 >= point.scored }));
  const lastSolved = told.findLastIndex(({ solved }) => solved);
  const now = points.at(-1);
  return {
    step: points.map(({ step }) => step),
    solve: points.map(({ scored, successes }) => (scored === 0 ? null : successes / scored)),
    scored: points.map(({ scored }) => scored),
    first_solved: told.find(({ successes }) => successes > 0)?.step ?? null,
    flips: told.filter(({ solved }, at) => at > 0 && solved !== told[at - 1]!.solved).length,
    regressed_at: lastSolved < 0 ? null : (told[lastSolved + 1]?.step ?? null),
    now: now ? { step: now.step, successes: now.successes, scored: now.scored } : null,
  };
}
