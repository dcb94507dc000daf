import type { SessionCallView, SessionView } from './schemas/session.schema.ts';

/** What the server sends on a session’s socket, `/v1/sessions/{sid}/socket` (docs/sessions.md): JSON texts, one object each. */

/** To the client. `event` names where it stands: a socket that is opened with `?after={event}` goes on behind it. */
export type SessionTold =
  /** The call is in the ledger; it runs, or ran. */
  | { type: 'accepted'; id: string; task_id: string }
  /** `result`: what `POST /call` streams, `{"ok": true, "output": {...}}` for example. */
  | { type: 'result'; id: string; task_id: string; result: unknown }
  /** With a task id the call has ended so, and a repeat is told the same; without one nothing ran for this message. */
  | {
      type: 'error';
      id: string | null;
      task_id?: string;
      status: number;
      code: string;
      message: string;
      detail: unknown;
      retry_after?: number;
    }
  | { type: 'session'; event: string; session: SessionView }
  /** A call of anybody, when it begins and when it ends; after a resumption perhaps again, as it is then. */
  | { type: 'call'; event: string; call: SessionCallView }
  /** Nothing more will come. */
  | { type: 'end'; event: string; session: SessionView }
  | { type: 'pong' };
