import { GLANCE_LIMIT, type SessionGlance } from './session-events.sql.ts';

/** Where a reader of a session's events stands; what `Last-Event-ID` says. */
export interface EventPosition {
  /** Of the session's row; 0 = never seen. */
  version: number;
  /** Every call up to this number has been told, the running ones aside. */
  floor: number;
}

/** The id of an event: a reader that comes back with it, on any process, misses nothing; some calls may be told again. */
export const formatPosition = ({ version, floor }: EventPosition): string => `${version}.${floor}`;

export function parsePosition(id: string | undefined): EventPosition | null {
  const match = /^(\d{1,10})\.(\d{1,15})$/.exec(id?.trim() ?? '');
  return match === null ? null : { version: Number(match[1]), floor: Number(match[2]) };
}

/** A glance as it would have been at `version` of the session, when these calls had ended that it still saw running. */
export const endedSince = (glance: SessionGlance, ended: ReadonlySet<string>, version: number): SessionGlance => ({
  ...glance,
  version,
  calls: glance.calls.map((call) => (ended.has(call.taskId) ? { ...call, running: false } : call)),
});

/** What one reader has been told of one session, and what it is to be told next. */
export class EventReader {
  #version: number;
  #floor: number;
  /** Told as running; and told as ended, as long as they are above the floor. */
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

  /** The session itself is news. */
  isNew(glance: SessionGlance): boolean {
    return glance.version > this.#version;
  }

  /** Task ids of the calls that are news: begun, or ended. */
  news(glance: SessionGlance): string[] {
    return glance.calls
      .filter(({ taskId, seq, running }) => {
        if (this.#running.has(taskId)) return !running;
        return seq > this.#floor && !this.#ended.has(taskId);
      })
      .map(({ taskId }) => taskId);
  }

  /** All news of this glance have been told. */
  told(glance: SessionGlance): void {
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

  /** Nothing more will come. */
  isOver(glance: SessionGlance): boolean {
    return glance.ended && glance.calls.length < GLANCE_LIMIT && (glance.quiet || this.#running.size === 0);
  }
}
