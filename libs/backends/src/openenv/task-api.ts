import {
  type JsonObject,
  type JsonValue,
  PalestraError,
  type Split,
  type SplitType,
  stringifyJson,
  type TaskSpec,
  toPlainNumber,
} from '@palestra/protocol';
import type { HttpAnswer, OpenEnvConnection } from './connection.ts';
import { isObject, notOpenEnv, readJson } from './wire.ts';

/** Every request builds an environment on the server, so what is asked for each session is kept this long. */
const MAX_AGE_MS = 60_000;
/** What is kept is read for all who wait, so it has a deadline of its own and no caller can abort it for the others. */
const shared = () => AbortSignal.timeout(120_000);
/** A whole list is not read again for each minute's first session. */
const PLACES_MAX_AGE_MS = 600_000;
/** A split with more tasks is not searched for a task that came back without its place. */
const MAX_SEARCHED = 50_000;
const TYPES: JsonValue[] = ['train', 'validation', 'test'];

/** What an environment without tasks offers: its resets, chosen by seed where the client wants another one. */
const ONLY_SPLIT: Split = { name: 'train', type: 'train' };
const ONLY_TASK: TaskSpec = {};

/** The environment did not implement this route of the Task API. */
class NotImplemented extends Error {}

/**
 * Splits and tasks of a server, by its Task API (openenv-wire.md section 13; from 0.4). An environment that has none, by its version or because
 * it does not implement it, has the split `train` with one task, `{}`.
 */
export class TaskApi {
  #splits: { read: Promise<Split[] | null>; at: number } | null = null;
  readonly #counts = new Map<string, { read: Promise<number>; at: number }>();
  readonly #places = new Map<string, { read: Promise<Map<string, number>>; at: number }>();

  constructor(
    readonly connection: OpenEnvConnection,
    /** As the server spells it; null: a version without Task API. */
    readonly environment: string | null,
  ) {}

  async splits(): Promise<Split[]> {
    return (await this.#published()) ?? [ONLY_SPLIT];
  }

  /** Whether a task is chosen by `{split, index}`. */
  async hasTasks(): Promise<boolean> {
    return (await this.#published()) !== null;
  }

  async tasks(split: string, signal: AbortSignal): Promise<TaskSpec[]> {
    if (!(await this.#known(split))) return [ONLY_TASK];
    return this.#asked('tasks', { split }, signal, async (answer) => listOf(answer)).catch((error: unknown) => {
      throw error instanceof NotImplemented ? new PalestraError('tasks_not_listable') : error;
    });
  }

  async count(split: string): Promise<number> {
    if (!(await this.#known(split))) return 1;
    const known = this.#counts.get(split);
    if (known !== undefined && Date.now() - known.at < MAX_AGE_MS) return known.read;
    const read = this.#asked('num_tasks', { split }, shared(), async (answer) => {
      const count = toPlainNumber((answer as JsonObject)['num_tasks']);
      if (count === null) throw notOpenEnv('sent no number of tasks');
      return count;
    }).catch(async (error: unknown) => {
      if (!(error instanceof NotImplemented)) throw error;
      return (await this.tasks(split, shared())).length;
    });
    return this.#kept(this.#counts, split, read);
  }

  async task(split: string, index: number, signal: AbortSignal): Promise<TaskSpec> {
    const place = await this.place(split, index);
    if (!(await this.hasTasks())) return ONLY_TASK;
    return this.#asked('task', { split, index: place }, signal, async (answer) => (answer as JsonObject)['task'] ?? null).catch(
      async (error: unknown) => {
        if (!(error instanceof NotImplemented)) throw error;
        return (await this.tasks(split, signal))[place];
      },
    );
  }

  /** `start`, `stop` as on the wire: null = default, negatives count from the end, clamped, stop exclusive. */
  async range(split: string, start: number | null, stop: number | null, signal: AbortSignal): Promise<TaskSpec[]> {
    const count = await this.count(split);
    const clamp = (bound: number) => Math.min(Math.max(bound < 0 ? count + bound : bound, 0), count);
    const [first, end] = [clamp(start ?? 0), clamp(stop ?? count)];
    if (first >= end) return [];
    if (!(await this.hasTasks())) return [ONLY_TASK];
    return this.#asked('task_range', { split, start: first, stop: end }, signal, async (answer) => listOf(answer)).catch(
      async (error: unknown) => {
        if (!(error instanceof NotImplemented)) throw error;
        return (await this.tasks(split, signal)).slice(first, end);
      },
    );
  }

  /** An index as a position from 0. Throws `invalid_split`, `invalid_index`. */
  async place(split: string, index: number): Promise<number> {
    const count = await this.count(split);
    const place = index < 0 ? count + index : index;
    if (!Number.isInteger(place) || place < 0 || place >= count) throw new PalestraError('invalid_index');
    return place;
  }

  /**
   * The place of a task that this server gave, which clients send back without saying where they had it from; null for one of their own making.
   * `reset` chooses a task by its place only.
   */
  async placeOf(spec: TaskSpec): Promise<{ split: string; index: number } | null> {
    const print = canonical(spec);
    for (const { name } of (await this.#published()) ?? []) {
      const index = (await this.#placesOf(name)).get(print);
      if (index !== undefined) return { split: name, index };
    }
    return null;
  }

  async #placesOf(split: string): Promise<Map<string, number>> {
    const known = this.#places.get(split);
    if (known !== undefined && Date.now() - known.at < PLACES_MAX_AGE_MS) return known.read;
    const read = (async () => {
      const count = await this.count(split);
      const tasks = count > MAX_SEARCHED ? [] : await this.range(split, null, null, shared()).catch(noneListed);
      // Of two equal tasks, the first.
      return new Map(tasks.map((task, index): [string, number] => [canonical(task), index]).toReversed());
    })();
    return this.#kept(this.#places, split, read);
  }

  /** null: the environment has no tasks. */
  #published(): Promise<Split[] | null> {
    if (this.environment === null) return Promise.resolve(null);
    if (this.#splits !== null && Date.now() - this.#splits.at < MAX_AGE_MS) return this.#splits.read;
    const read = this.#asked('splits', null, shared(), async (rows) => {
      if (!Array.isArray(rows)) throw notOpenEnv('sent no list of splits');
      return rows.map(readSplit);
    }).catch((error: unknown) => {
      if (error instanceof NotImplemented) return null;
      throw error;
    });
    this.#splits = { read, at: Date.now() };
    read.catch(() => (this.#splits = null));
    return read;
  }

  /** Whether the environment has tasks. Throws `invalid_split`: the server itself would answer 500. */
  async #known(split: string): Promise<boolean> {
    const published = await this.#published();
    if (!(published ?? [ONLY_SPLIT]).some(({ name }) => name === split)) throw new PalestraError('invalid_split');
    return published !== null;
  }

  async #asked<T>(route: string, body: JsonObject | null, signal: AbortSignal, read: (answer: JsonValue) => Promise<T>): Promise<T> {
    const path = `/${encodeURIComponent(this.environment!)}/${route}`;
    const answer = await (body === null ? this.connection.get(path, signal) : this.connection.post(path, body, 'idempotent', signal));
    if (answer.status === 501) throw new NotImplemented(route);
    if (answer.status !== 200) throw refusalOf(answer);
    return read(readJson(answer.body.toString('utf8'), `an answer on ${route}`));
  }

  #kept<T>(cache: Map<string, { read: Promise<T>; at: number }>, key: string, read: Promise<T>): Promise<T> {
    cache.set(key, { read, at: Date.now() });
    read.catch(() => cache.delete(key));
    return read;
  }
}

function refusalOf({ status, body }: HttpAnswer): PalestraError {
  const text = body.toString('utf8').slice(0, 2_000);
  if (status === 400) return new PalestraError('invalid_index');
  if (status === 422) return new PalestraError('invalid_request', { detail: text });
  if (status === 502 || status === 503) return new PalestraError('backend_unreachable', { retryAfterSeconds: 2 });
  return new PalestraError('environment_failed', { detail: text || `The OpenEnv server answered ${status}.` });
}

function listOf(answer: JsonValue): TaskSpec[] {
  if (!isObject(answer) || !Array.isArray(answer['tasks'])) throw notOpenEnv('sent no list of tasks');
  return answer['tasks'];
}

/** A bare name that is a type is of that type; every other one is for validation. */
function readSplit(row: JsonValue): Split {
  const name = isObject(row) ? row['name'] : row;
  if (typeof name !== 'string') throw notOpenEnv('sent a split without a name');
  const type = isObject(row) && TYPES.includes(row['type']) ? row['type'] : TYPES.includes(name) ? name : 'validation';
  return { name, type: type as SplitType };
}

function noneListed(error: unknown): TaskSpec[] {
  if (error instanceof PalestraError && error.code === 'tasks_not_listable') return [];
  throw error;
}

/** Equal for equal values, whatever the order of their keys. */
function canonical(value: JsonValue): string {
  const sorted = (inner: JsonValue): JsonValue => {
    if (Array.isArray(inner)) return inner.map(sorted);
    if (!isObject(inner) || toPlainNumber(inner) !== null) return inner;
    return Object.fromEntries(
      Object.keys(inner)
        .toSorted()
        .map((key) => [key, sorted(inner[key])]),
    );
  };
  return stringifyJson(sorted(value));
}
