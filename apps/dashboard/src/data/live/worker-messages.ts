import type { StreamEvent } from '@palestra/protocol';

/** From a tab to the worker that holds its connection. `urls`: of all streams that the tab follows. */
export type FromTab = { kind: 'join' | 'leave'; url: string } | { kind: 'alive'; urls: string[] };

export type ToTab =
  | { url: string; kind: 'open' }
  /** `failures` in a row; `closed`: the browser has given up. */
  | { url: string; kind: 'down'; failures: number; closed: boolean }
  | { url: string; kind: 'event'; event: StreamEvent; data: string };
