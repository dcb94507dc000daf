import type { Group } from '@palestra/protocol';

/** Describes the variance of a group: with zero variance every advantage is zero, and the group does not train the policy. */
export const signalOf = (zero: Group['zero_variance'], scored: number): { text: string; className: string } => {
  if (zero === 'all-pass') return { text: 'zero variance: all solved', className: 'text-ink-3' };
  if (zero === 'all-fail') return { text: 'zero variance: none solved', className: 'text-ink-3' };
  if (zero === 'equal-other') return { text: 'zero variance: all equal', className: 'text-ink-3' };
  return scored < 2 ? { text: 'fewer than 2 scored', className: 'text-ink-3' } : { text: 'nonzero variance', className: 'text-good' };
};
