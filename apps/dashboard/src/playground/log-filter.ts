import type { SessionCallView } from '@palestra/protocol';

export const OUTCOMES = ['all', 'scored', 'unscored', 'failed', 'running'] as const;
export interface LogFilter {
  /** Searched in tool, arguments and result, ignoring case. */
  text: string;
  outcome: (typeof OUTCOMES)[number];
}
export const NO_FILTER: LogFilter = { text: '', outcome: 'all' };

export interface NumberedCall {
  call: SessionCallView;
  /** Number of the call in the session, from 1. */
  n: number;
}

const matchesOutcome: Record<LogFilter['outcome'], (call: SessionCallView) => boolean> = {
  all: () => true,
  scored: ({ reward }) => reward !== null,
  unscored: ({ reward, state }) => reward === null && state !== 'running',
  failed: ({ failure_class: failure }) => failure !== null && failure !== 'ok',
  running: ({ state }) => state === 'running',
};

/** The calls that match the filter, with their numbers in the session. */
export function filterCalls(calls: readonly SessionCallView[], { text, outcome }: LogFilter): NumberedCall[] {
  const needle = text.trim().toLowerCase();
  return calls
    .map((call, index) => ({ call, n: index + 1 }))
    .filter(({ call }) => matchesOutcome[outcome](call))
    .filter(({ call }) => needle === '' || `${call.tool}\n${call.input}\n${call.text ?? ''}`.toLowerCase().includes(needle));
}
