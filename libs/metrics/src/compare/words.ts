import type { Comparison } from './compare.ts';

const count = (value: number, noun: string): string => `${value.toLocaleString('en')} ${noun}${value === 1 ? '' : 's'}`;

/** What the comparison can detect, and what the present difference would need, in one or two sentences. `format` prints a difference. */
export function powerInWords({ method, power, difference, first, other }: Comparison, format: (difference: number) => string): string {
  if (!power) return 'The power is unknown: the variance of this figure cannot be estimated.';
  if (power.detectable === 0) return 'The difference is the same in every task.';
  const limit = `A true difference of ${format(power.detectable)} is detected in 80 % of comparisons like this one.`;
  if (power.resolved) return limit;
  const noun = method === 'rollouts' ? 'rollout' : 'task';
  const present = Math.min(...[first, other].map((side) => (method === 'rollouts' ? side.samples : side.tasks)));
  const ways: string[] = [];
  if (power.needed !== null)
    ways.push(`${count(power.needed, noun)} in each run (${count(Math.max(0, power.needed - present), 'more').replace(/s$/, '')})`);
  if (power.samplesNeeded !== null) {
    const samples = Math.round((first.samples + other.samples) / 2 / first.tasks);
    ways.push(
      `${count(power.samplesNeeded, 'sample')} per task (${count(Math.max(0, power.samplesNeeded - samples), 'more').replace(/s$/, '')})`,
    );
  }
  if (ways.length === 0) return `${limit} No number of samples resolves the present difference.`;
  return `${limit} The present difference of ${format(Math.abs(difference))} needs about ${ways.join(' or ')}.`;
}
