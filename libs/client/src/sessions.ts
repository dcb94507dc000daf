import { newUuid, systemClock } from '@palestra/kit';
import type {
  OpenSessionBody,
  SessionCallList,
  SessionCallView,
  SessionForkView,
  SessionList,
  SessionRow,
  SessionRun,
  SessionView,
  SlotGroup,
  SlotList,
} from '@palestra/protocol';
import { SseParser } from '@palestra/kit/sse';
import type { Connection } from './connection.ts';
import { query } from './environments.ts';
import { PalestraApiError } from './errors.ts';
import { mayHaveRun, requestRetry, withRetry } from './retry.ts';

export interface SessionListOptions {
  /** State names; `live` selects all sessions that have not ended, `ended` the others. */
  states?: string[];
  /** `owner/name` */
  environment?: string;
  run?: string;
  keyId?: string;
  failureClass?: string;
  forkedFrom?: string;
}

/** An event of a session. A call has an event when it begins and when it ends; after a resumption events can repeat. */
export type SessionEvent = { type: 'session' | 'end'; session: SessionView } | { type: 'call'; call: SessionCallView };

/** Opening waits for a slot and for the environment's constructor. */
const OPEN_DEADLINE_MS = 1_800_000;
const RECONNECT_MS = 500;

const path = (sid: string, rest = ''): string => `/v1/sessions/${encodeURIComponent(sid)}${rest}`;

/** Sessions of the caller's organisation, their calls and slots. `client.session` plays episodes. */
export class Sessions {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Newest first. Pages are read on demand. */
  async *list(options: SessionListOptions = {}): AsyncGenerator<SessionRow> {
    const { states, environment, run, keyId, failureClass, forkedFrom } = options;
    const filter = { state: states?.join(','), environment, run, key_id: keyId, failure_class: failureClass, forked_from: forkedFrom };
    let cursor: string | undefined;
    do {
      const page = (await this.#connection.json({ path: `/v1/sessions${query({ ...filter, cursor, limit: 200 })}` })) as SessionList;
      yield* page.sessions;
      cursor = page.next_cursor ?? undefined;
    } while (cursor !== undefined);
  }

  async get(sid: string): Promise<SessionView> {
    return (await this.#connection.json({ path: path(sid) })) as SessionView;
  }

  /** The calls of the ledger in order. Bodies over 64 kB are cut; `call` returns them whole. */
  async *calls(sid: string): AsyncGenerator<SessionCallView> {
    let after: number | null = 0;
    while (after !== null) {
      const page = (await this.#connection.json({ path: path(sid, `/calls?after=${after}&limit=200`) })) as SessionCallList;
      yield* page.calls;
      after = page.next_after;
    }
  }

  async call(sid: string, taskId: string): Promise<SessionCallView> {
    return (await this.#connection.json({ path: path(sid, `/calls/${encodeURIComponent(taskId)}`) })) as SessionCallView;
  }

  /** Reserves and opens a session in one request; retries open it only once. Play it with `client.attach`. */
  async open(body: OpenSessionBody, signal?: AbortSignal): Promise<SessionView> {
    const withId = { ...body, sid: body.sid ?? newUuid() };
    let responseLost = false;
    const attempt = async (): Promise<SessionView> => {
      try {
        const call = { method: 'POST' as const, path: '/v1/sessions', body: withId, signal, deadlineMs: OPEN_DEADLINE_MS };
        return (await this.#connection.jsonOnce(call)) as SessionView;
      } catch (error) {
        if (responseLost && error instanceof PalestraApiError && error.code === 'session_exists') return this.get(withId.sid);
        if (mayHaveRun(error)) responseLost = true;
        throw error;
      }
    };
    return withRetry(attempt, requestRetry, signal);
  }

  /** Ends a session of any member of the organisation. */
  async end(sid: string): Promise<SessionView> {
    return (await this.#connection.json({ method: 'DELETE', path: path(sid) })) as SessionView;
  }

  /** Creates a session that begins with a verified replay of the first `atCall` calls of this one (default: all). */
  async fork(sid: string, options: { atCall?: number; run?: SessionRun } = {}): Promise<SessionForkView> {
    const body = { at_call: options.atCall ?? null, run: options.run ?? null };
    return (await this.#connection.jsonOnce({
      method: 'POST',
      path: path(sid, '/fork'),
      body,
      deadlineMs: OPEN_DEADLINE_MS,
    })) as SessionForkView;
  }

  /** Follows a session until it ends, and reconnects if necessary. `after`: starts after the call with this `seq`, else with the running calls. */
  async *events(sid: string, options: { after?: number; signal?: AbortSignal } = {}): AsyncGenerator<SessionEvent> {
    const { signal } = options;
    let position: string | undefined;
    for (;;) {
      const headers: Record<string, string> = position === undefined ? {} : { 'last-event-id': position };
      const call = { path: path(sid, `/events${query({ after: options.after })}`), headers, signal };
      const stream = await withRetry(() => this.#connection.openStream(call), requestRetry, signal);
      try {
        const reader = new EventReader();
        for await (const bytes of stream) {
          for (const { event, data, id } of reader.push(bytes)) {
            const value = JSON.parse(data) as unknown;
            if (event === 'call') yield { type: 'call', call: value as SessionCallView };
            else if (event === 'session' || event === 'end') yield { type: event, session: value as SessionView };
            position = id ?? position;
            if (event === 'end') return;
          }
        }
      } catch (error) {
        // An interrupted or silent stream is resumed after its last event.
        if (signal?.aborted) throw error;
      }
      await systemClock.sleep(RECONNECT_MS, signal);
    }
  }

  /** The slots of the environments that the organisation uses or manages, or of one environment. */
  async slots(environment?: string): Promise<SlotGroup[]> {
    return ((await this.#connection.json({ path: `/v1/slots${query({ environment })}` })) as SlotList).environments;
  }
}

/** Parses events with their ids. `SseParser` drops ids, because streams of calls have none. */
class EventReader {
  readonly #parser = new SseParser();
  readonly #decoder = new TextDecoder();
  #rest = '';

  push(bytes: Uint8Array): { event: string; data: string; id: string | null }[] {
    this.#rest += this.#decoder.decode(bytes, { stream: true });
    const blocks = this.#rest.split('\r\n\r\n');
    this.#rest = blocks.pop()!;
    return blocks.flatMap((block) => {
      const id = /^id: (.+)$/m.exec(block)?.[1]?.trim() ?? null;
      return this.#parser.push(`${block}\r\n\r\n`).map((event) => ({ ...event, id }));
    });
  }
}
