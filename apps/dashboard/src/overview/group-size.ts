import type { RunSummary } from '@palestra/protocol';
import { formatCount } from '../format/number.ts';

/** `4 is the most common group size, 100 of 101 groups`. */
export const sizeNote = ({ n, groups, of }: NonNullable<RunSummary['group_size']>): string =>
  groups === of
    ? `all groups have ${n} rollouts`
    : `${n} is the most common group size, ${formatCount(groups)} of ${formatCount(of)} groups`;
