import type { SessionCallView } from '@palestra/protocol';

export const OUTCOMES = ['all', 'scored', 'unscored', 'failed', 'running'] as const;
export interface LogFilter {
  /** Looked for in tool, arguments and result, whatever their case. */
  text: string;
  outcome: (typeof OUTCOMES)[number];
}
export const NO_FILTER: LogFilter = { text: '', outcome: 'all' };

export interface NumberedCall {
  call: SessionCallView;
  /** From 1, in the session. */
  n: number;
}

const has: Record<LogFilter['outcome'], (call: SessionCallView) => boolean> = {
  all: () => true,
  scored: ({ reward }) => reward !== null,
  unscored: ({ reward, state }) => reward === null && state !== 'running',
  failed: ({ failure_class: failure }) => failure !== null && failure !== 'ok',
  running: ({ state }) => state === 'running',
};

/** The calls that a filter leaves, with their numbers among all. */
export function filtered(calls: readonly SessionCallView[], { text, outcome }: LogFilter): NumberedCall[] {
  const wanted = text.trim().toLowerCase();
  return calls
    .map((call, index) => ({ call, n: index + 1 }))
    .filter(({ call }) => has[outcome](call))
    .filter(({ call }) => wanted === '' || `${call.tool}\n${call.input}\n${call.text ?? ''}`.toLowerCase().includes(wanted));
}
