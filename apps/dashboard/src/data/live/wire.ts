/** What `/v1/stream` tells (apps/api/src/runs/stream). */
export const STREAM_EVENTS = ['run', 'counters', 'dirty', 'reset', 'advisory', 'rollout'] as const;
export type StreamEvent = (typeof STREAM_EVENTS)[number];

/** From a tab to the worker that holds its connection. */
export type FromTab = { kind: 'join' | 'leave'; url: string } | { kind: 'alive' };

export type ToTab =
  | { url: string; kind: 'open' }
  /** `failures` in a row; `closed`: the browser has given up. */
  | { url: string; kind: 'down'; failures: number; closed: boolean }
  | { url: string; kind: 'event'; event: StreamEvent; data: string };
