import type { StreamEvent } from '@palestra/protocol';

/** From a tab to the worker that holds its connection. */
export type FromTab = { kind: 'join' | 'leave'; url: string } | { kind: 'alive' };

export type ToTab =
  | { url: string; kind: 'open' }
  /** `failures` in a row; `closed`: the browser has given up. */
  | { url: string; kind: 'down'; failures: number; closed: boolean }
  | { url: string; kind: 'event'; event: StreamEvent; data: string };
