import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { Logger } from 'pino';
import type { SessionCallView } from '@palestra/protocol';
import { Database } from '../../platform/database/database.ts';
import { LOGGER } from '../../platform/tokens.ts';
import { floorOfNow, glance, glanceAtSession, GLANCE_LIMIT, type SessionGlance } from './session-events.sql.ts';
import { endedSince, EventCursor, type EventPosition } from './session-event-cursor.ts';
import { selectCallsById } from '../views/session-list.sql.ts';
import { presentCall } from '../views/session.presenter.ts';

/** Changes of a session for one watcher. `over`: the session has ended and these are the last changes. */
export interface SessionChanges {
  /** The position of the watcher before these changes. */
  before: EventPosition;
  /** Its position after them. */
  position: EventPosition;
  /** The session itself changed. */
  session: boolean;
  calls: SessionCallView[];
  over: boolean;
}

/** How often a watched session is read, because any process may change it. */
const POLL_MS = 500;
/** About how long after a change by this process it is stored and can be read. */
const STORED_AFTER_MS = 25;

interface Watcher {
  cursor: EventCursor;
  tell: (changes: SessionChanges) => Promise<void> | void;
}

interface Watched {
  watchers: Set<Watcher>;
  stop: () => void;
  /** The next read starts at once, because this process changed the session. */
  isDue: boolean;
  /** Sets `isDue` when that change is stored. One timer for all changes until then. */
  dueTimer: NodeJS.Timeout | null;
  wake: () => void;
}

/** Follows watched sessions in the database, with one poll per session and process. */
@Injectable()
export class SessionEvents implements OnApplicationShutdown {
  readonly #watched = new Map<string, Watched>();

  constructor(
    @Inject(Database) private readonly database: Database,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  /** The position from which a watcher gets running calls and everything that happens from now on. */
  async now(sid: string): Promise<EventPosition> {
    return { version: 0, floor: await floorOfNow(this.database.pool, sid) };
  }

  /** Calls `tell` with the changes after `from`, until the returned function is called or the session is over. */
  watch(sid: string, from: EventPosition, tell: Watcher['tell']): () => void {
    const watcher: Watcher = { cursor: new EventCursor(from), tell };
    const watched = this.#watched.get(sid) ?? this.#begin(sid);
    watched.watchers.add(watcher);
    return () => this.#leave(sid, watched, watcher);
  }

  /** Call when this process changes the session, so that watchers here need not wait for the next poll. */
  onLocalChange(sid: string): void {
    const watched = this.#watched.get(sid);
    if (watched === undefined || watched.dueTimer !== null) return;
    watched.dueTimer = setTimeout(() => {
      watched.dueTimer = null;
      watched.isDue = true;
      watched.wake();
    }, STORED_AFTER_MS);
    watched.dueTimer.unref();
  }

  onApplicationShutdown(): void {
    for (const { stop } of this.#watched.values()) stop();
    this.#watched.clear();
  }

  #begin(sid: string): Watched {
    const wait = new AbortController();
    const watched: Watched = { watchers: new Set(), stop: () => wait.abort(), isDue: false, dueTimer: null, wake: () => {} };
    this.#watched.set(sid, watched);
    void this.#follow(sid, watched, wait.signal);
    return watched;
  }

  #leave(sid: string, watched: Watched, watcher: Watcher): void {
    watched.watchers.delete(watcher);
    if (watched.watchers.size > 0) return;
    watched.stop();
    if (this.#watched.get(sid) === watched) this.#watched.delete(sid);
  }

  async #follow(sid: string, watched: Watched, signal: AbortSignal): Promise<void> {
    // The first watcher is added right after this call.
    await Promise.resolve();
    while (!signal.aborted) {
      const more = await this.#poll(sid, watched).catch((error: unknown) => {
        this.logger.debug({ err: error, sid }, 'a watched session could not be read; it is read again');
        return false;
      });
      if (!more && !watched.isDue) await pause(POLL_MS, signal, (wake) => (watched.wake = wake));
      watched.isDue = false;
    }
  }

  /** True when there may be more changes to read at once. */
  async #poll(sid: string, watched: Watched): Promise<boolean> {
    const watchers = [...watched.watchers];
    const floor = Math.min(...watchers.map(({ cursor }) => cursor.floor));
    const running = [...new Set(watchers.flatMap(({ cursor }) => cursor.running))];
    const glanced = await glance(this.database.pool, sid, floor, running);
    if (glanced === null) {
      for (const watcher of watchers) {
        const { position } = watcher.cursor;
        await watcher.tell({ before: position, position, session: false, calls: [], over: true });
      }
      return false;
    }
    const changed = [...new Set(watchers.flatMap(({ cursor }) => cursor.changedCalls(glanced)))];
    const rows = changed.length === 0 ? [] : await selectCallsById(this.database.pool, sid, changed);
    const views = new Map(rows.map((row) => [row.task_id, presentCall(row)]));
    const seen = await this.#updateFromRows(sid, glanced, views);
    for (const watcher of watchers) await this.#tell(watcher, seen, views);
    return seen.calls.length === GLANCE_LIMIT && changed.length > 0;
  }

  /** The glance updated by the rows of its calls: a call that ended between the two reads is reported as ended now, and not again later. */
  async #updateFromRows(sid: string, glanced: SessionGlance, views: Map<string, SessionCallView>): Promise<SessionGlance> {
    const ended = glanced.calls.filter(({ taskId, running }) => running && (views.get(taskId)?.state ?? 'running') !== 'running');
    if (ended.length === 0) return glanced;
    // The session's sums change with it.
    const session = await glanceAtSession(this.database.pool, sid);
    return endedSince(glanced, new Set(ended.map(({ taskId }) => taskId)), session?.version ?? glanced.version);
  }

  async #tell({ cursor, tell }: Watcher, seen: SessionGlance, views: Map<string, SessionCallView>): Promise<void> {
    const before = cursor.position;
    const session = cursor.sessionChanged(seen);
    const calls = cursor.changedCalls(seen).flatMap((taskId) => views.get(taskId) ?? []);
    cursor.advance(seen);
    const over = cursor.isOver(seen);
    if (session || over || calls.length > 0) await tell({ before, position: cursor.position, session, calls, over });
  }
}

function pause(ms: number, signal: AbortSignal, onWake: (wake: () => void) => void): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end);
    onWake(end);
  });
}
