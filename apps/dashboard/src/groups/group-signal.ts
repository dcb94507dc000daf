import type { Group } from '@palestra/protocol';

/** Describes whether a group has a training signal: without variance every advantage is zero. */
export const signalOf = (zero: Group['zero_variance'], scored: number): { text: string; className: string } => {
  if (zero === 'all-pass') return { text: 'zero variance: all solved', className: 'text-ink-3' };
  if (zero === 'all-fail') return { text: 'zero variance: none solved', className: 'text-ink-3' };
  if (zero === 'equal-other') return { text: 'zero variance: all equal', className: 'text-ink-3' };
  return scored < 2 ? { text: 'fewer than 2 scored', className: 'text-ink-3' } : { text: 'signal', className: 'text-good' };
};
