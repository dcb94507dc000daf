import { GLANCE_LIMIT, type SessionGlance } from './session-events.sql.ts';

/** A position in the events of a session, as in `Last-Event-ID`. */
export interface EventPosition {
  /** Version of the session's row; 0 for never read. */
  version: number;
  /** All calls up to this number have been sent, except running ones. */
  floor: number;
}

/** The id of an event. A client that resumes with it, on any process, misses nothing; it may get some calls again. */
export const formatPosition = ({ version, floor }: EventPosition): string => `${version}.${floor}`;

export function parsePosition(id: string | undefined): EventPosition | null {
  const match = /^(\d{1,10})\.(\d{1,15})$/.exec(id?.trim() ?? '');
  return match === null ? null : { version: Number(match[1]), floor: Number(match[2]) };
}

/** The glance at `version` of the session, with these running calls as ended. */
export const endedSince = (glance: SessionGlance, ended: ReadonlySet<string>, version: number): SessionGlance => ({
  ...glance,
  version,
  calls: glance.calls.map((call) => (ended.has(call.taskId) ? { ...call, running: false } : call)),
});

/** What one watcher of a session has been sent, and what it needs next. */
export class EventCursor {
  #version: number;
  #floor: number;
  /** Calls that were sent as running, with their `seq`, and calls above the floor that were sent as ended. */
  readonly #running = new Map<string, number>();
  readonly #ended = new Set<string>();

  constructor(position: EventPosition) {
    this.#version = position.version;
    this.#floor = position.floor;
  }

  get floor(): number {
    return this.#floor;
  }
  get running(): string[] {
    return [...this.#running.keys()];
  }

  get position(): EventPosition {
    return { version: this.#version, floor: Math.min(this.#floor, ...[...this.#running.values()].map((seq) => seq - 1)) };
  }

  /** Whether the session's row changed. */
  sessionChanged(glance: SessionGlance): boolean {
    return glance.version > this.#version;
  }

  /** Task ids of the calls that began or ended. */
  changedCalls(glance: SessionGlance): string[] {
    return glance.calls
      .filter(({ taskId, seq, running }) => {
        if (this.#running.has(taskId)) return !running;
        return seq > this.#floor && !this.#ended.has(taskId);
      })
      .map(({ taskId }) => taskId);
  }

  /** Call when all changes of the glance have been sent. */
  advance(glance: SessionGlance): void {
    this.#version = Math.max(this.#version, glance.version);
    for (const { taskId, seq, running } of glance.calls) {
      if (running) this.#running.set(taskId, seq);
      else {
        this.#running.delete(taskId);
        if (seq > this.#floor) this.#ended.add(taskId);
      }
    }
    for (const { taskId, seq, settled } of glance.calls) {
      if (seq <= this.#floor) continue;
      if (!settled) break;
      this.#floor = seq;
      this.#ended.delete(taskId);
    }
  }

  /** Whether no more changes can follow. */
  isOver(glance: SessionGlance): boolean {
    return glance.ended && glance.calls.length < GLANCE_LIMIT && (glance.quiet || this.#running.size === 0);
  }
}
