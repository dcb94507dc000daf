import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { Logger } from 'pino';
import type { SessionCallView } from '@palestra/protocol';
import { Database } from '../../platform/database/database.ts';
import { LOGGER } from '../../platform/tokens.ts';
import { floorOfNow, glance, glanceAtSession, GLANCE_LIMIT, type SessionGlance } from './session-events.sql.ts';
import { endedSince, EventReader, type EventPosition } from './session-events.watcher.ts';
import { selectCallsById } from '../views/session-list.sql.ts';
import { presentCall } from '../views/session.presenter.ts';

/** Told to somebody who watches a session. `over`: it has ended, and everything was told. */
export interface SessionNews {
  /** Where the reader stood before these news. */
  before: EventPosition;
  /** Where it stands when it has read all of them. */
  position: EventPosition;
  /** The session itself changed. */
  session: boolean;
  calls: SessionCallView[];
  over: boolean;
}

/** How often a watched session is looked at: its changes may happen on any process. */
const POLL_MS = 500;
/** What this process did to a session is stored, and can be told, about this long afterwards. */
const SOON_MS = 25;

interface Watcher {
  reader: EventReader;
  tell: (news: SessionNews) => Promise<void> | void;
}

interface Watched {
  watchers: Set<Watcher>;
  stop: () => void;
  /** Something has happened: the next look waits for no more. */
  hurried: boolean;
  /** Until that, however much happens meanwhile. */
  hurrying: NodeJS.Timeout | null;
  wake: () => void;
}

/** Follows sessions in the database while somebody watches: one poll per session and process, however many watch it. */
@Injectable()
export class SessionEvents implements OnApplicationShutdown {
  readonly #watched = new Map<string, Watched>();

  constructor(
    @Inject(Database) private readonly database: Database,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  /** Where somebody begins who asks for what happens from now on, and for what runs now. */
  async now(sid: string): Promise<EventPosition> {
    return { version: 0, floor: await floorOfNow(this.database.pool, sid) };
  }

  /** Tells what happened after `from`, and goes on until the returned function is called or the session is over. */
  watch(sid: string, from: EventPosition, tell: Watcher['tell']): () => void {
    const watcher: Watcher = { reader: new EventReader(from), tell };
    const watched = this.#watched.get(sid) ?? this.#begin(sid);
    watched.watchers.add(watcher);
    return () => this.#leave(sid, watched, watcher);
  }

  /** Something happens to the session on this process: whoever watches it here need not wait for the next look. */
  soon(sid: string): void {
    const watched = this.#watched.get(sid);
    if (watched === undefined || watched.hurrying !== null) return;
    watched.hurrying = setTimeout(() => {
      watched.hurrying = null;
      watched.hurried = true;
      watched.wake();
    }, SOON_MS);
    watched.hurrying.unref();
  }

  onApplicationShutdown(): void {
    for (const { stop } of this.#watched.values()) stop();
    this.#watched.clear();
  }

  #begin(sid: string): Watched {
    const wait = new AbortController();
    const watched: Watched = { watchers: new Set(), stop: () => wait.abort(), hurried: false, hurrying: null, wake: () => {} };
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
    // Whoever began this is added right after.
    await Promise.resolve();
    while (!signal.aborted) {
      const more = await this.#look(sid, watched).catch((error: unknown) => {
        this.logger.debug({ err: error, sid }, 'a watched session could not be read; it will be');
        return false;
      });
      if (!more && !watched.hurried) await pause(POLL_MS, signal, (wake) => (watched.wake = wake));
      watched.hurried = false;
    }
  }

  /** True when there may be more right away. */
  async #look(sid: string, watched: Watched): Promise<boolean> {
    const watchers = [...watched.watchers];
    const floor = Math.min(...watchers.map(({ reader }) => reader.floor));
    const running = [...new Set(watchers.flatMap(({ reader }) => reader.running))];
    const glanced = await glance(this.database.pool, sid, floor, running);
    if (glanced === null) {
      for (const watcher of watchers) {
        const { position } = watcher.reader;
        await watcher.tell({ before: position, position, session: false, calls: [], over: true });
      }
      return false;
    }
    const wanted = [...new Set(watchers.flatMap(({ reader }) => reader.news(glanced)))];
    const rows = wanted.length === 0 ? [] : await selectCallsById(this.database.pool, sid, wanted);
    const views = new Map(rows.map((row) => [row.task_id, presentCall(row)]));
    const seen = await this.#asRead(sid, glanced, views);
    for (const watcher of watchers) await this.#tell(watcher, seen, views);
    return seen.calls.length === GLANCE_LIMIT && wanted.length > 0;
  }

  /** The glance as of its calls' rows: one that ended between the two reads is told as ended now, and not again by the next look. */
  async #asRead(sid: string, glanced: SessionGlance, views: Map<string, SessionCallView>): Promise<SessionGlance> {
    const ended = glanced.calls.filter(({ taskId, running }) => running && (views.get(taskId)?.state ?? 'running') !== 'running');
    if (ended.length === 0) return glanced;
    // Its sums come with it.
    const session = await glanceAtSession(this.database.pool, sid);
    return endedSince(glanced, new Set(ended.map(({ taskId }) => taskId)), session?.version ?? glanced.version);
  }

  async #tell({ reader, tell }: Watcher, seen: SessionGlance, views: Map<string, SessionCallView>): Promise<void> {
    const before = reader.position;
    const session = reader.isNew(seen);
    const calls = reader.news(seen).flatMap((taskId) => views.get(taskId) ?? []);
    reader.told(seen);
    const over = reader.isOver(seen);
    if (session || over || calls.length > 0) await tell({ before, position: reader.position, session, calls, over });
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
