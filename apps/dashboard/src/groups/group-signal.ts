import type { Group } from '@palestra/protocol';

/** Describes the variance of a group: with zero variance every advantage is zero, and the group does not train the policy. */
export const signalOf = (zero: Group['zero_variance'], scored: number): { text: string; className: string } => {
  if (zero === 'all-pass') return { text: 'Zero variance: all solved', className: 'text-ink-3' };
  if (zero === 'all-fail') return { text: 'Zero variance: none solved', className: 'text-ink-3' };
  if (zero === 'equal-other') return { text: 'Zero variance: all equal', className: 'text-ink-3' };
  return scored < 2 ? { text: 'Fewer than 2 scored', className: 'text-ink-3' } : { text: 'Nonzero variance', className: 'text-good' };
};
