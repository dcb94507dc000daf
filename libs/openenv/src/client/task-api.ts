import {
  isObject,
  type JsonObject,
  type JsonValue,
  PalestraError,
  type Split,
  SPLIT_TYPES,
  type SplitType,
  stringifyJson,
  type TaskSpec,
  toPlainNumber,
} from '@palestra/protocol';
import { type HttpAnswer, type OpenEnvConnection, withDeadline } from './connection.ts';
import { notOpenEnv, readJson, httpErrorText } from '../wire/server-replies.ts';

/** Every request builds an environment on the server, so what is asked for each session is kept this long. */
const MAX_AGE_MS = 60_000;
const DEADLINE_MS = 120_000;
/** A whole list is not read again for each minute's first session. */
const PLACES_MAX_AGE_MS = 600_000;
/** A split with more tasks is not searched for a task that came back without its place. */
const MAX_SEARCHED = 50_000;
const TYPES: readonly JsonValue[] = SPLIT_TYPES;

/** What an environment without tasks offers: its resets, chosen by seed where the client wants another one. */
const ONLY_SPLIT: Split = { name: 'train', type: 'train' };
const ONLY_TASK: TaskSpec = {};

/** The environment did not implement this route of the Task API. */
class NotImplemented extends Error {}

/** Answers that are kept for a while; a failed one is not. */
class Kept<T> {
  readonly #answers = new Map<string, { answer: Promise<T>; at: number }>();

  constructor(readonly maxAgeMs: number) {}

  get(key: string, load: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const known = this.#answers.get(key);
    if (known !== undefined && Date.now() - known.at < this.maxAgeMs) return known.answer;
    const answer = withDeadline(DEADLINE_MS, load);
    this.#answers.set(key, { answer, at: Date.now() });
    answer.catch(() => this.#answers.delete(key));
    return answer;
  }
}

/**
 * Splits and tasks of a server, by its Task API (openenv-wire.md section 13; from 0.4). An environment that has none, by its version or because
 * it does not implement it, has the split `train` with one task, `{}`.
 */
export class TaskApi {
  readonly #splits = new Kept<Split[] | null>(MAX_AGE_MS);
  readonly #counts = new Kept<number>(MAX_AGE_MS);
  readonly #places = new Kept<Map<string, number>>(PLACES_MAX_AGE_MS);

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
    try {
      return listOf(await this.#asked('tasks', { split }, signal));
    } catch (error) {
      throw error instanceof NotImplemented ? new PalestraError('tasks_not_listable') : error;
    }
  }

  async count(split: string): Promise<number> {
    if (!(await this.#known(split))) return 1;
    return this.#counts.get(split, async (signal) => {
      const answer = await orElse(this.#asked('num_tasks', { split }, signal), async () => ({
        num_tasks: (await this.tasks(split, signal)).length,
      }));
      const count = isObject(answer) ? toPlainNumber(answer['num_tasks']) : null;
      if (count === null) throw notOpenEnv('sent no number of tasks');
      return count;
    });
  }

  async task(split: string, index: number, signal: AbortSignal): Promise<TaskSpec> {
    const place = await this.place(split, index);
    if (!(await this.hasTasks())) return ONLY_TASK;
    const listed = async () => ({ task: (await this.tasks(split, signal))[place] });
    const answer = await orElse(this.#asked('task', { split, index: place }, signal), listed);
    if (!isObject(answer) || answer['task'] === undefined) throw notOpenEnv('sent no task');
    return answer['task'];
  }

  /** `start`, `stop` as on the wire: null = default, negatives count from the end, clamped, stop exclusive. */
  async range(split: string, start: number | null, stop: number | null, signal: AbortSignal): Promise<TaskSpec[]> {
    const count = await this.count(split);
    const clamp = (bound: number) => Math.min(Math.max(bound < 0 ? count + bound : bound, 0), count);
    const [first, end] = [clamp(start ?? 0), clamp(stop ?? count)];
    if (first >= end) return [];
    if (!(await this.hasTasks())) return [ONLY_TASK];
    const listed = async () => ({ tasks: (await this.tasks(split, signal)).slice(first, end) });
    return listOf(await orElse(this.#asked('task_range', { split, start: first, stop: end }, signal), listed));
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

  #placesOf(split: string): Promise<Map<string, number>> {
    return this.#places.get(split, async (signal) => {
      const count = await this.count(split);
      const tasks = count > MAX_SEARCHED ? [] : await this.range(split, null, null, signal).catch(noneListed);
      // Of two equal tasks, the first.
      return new Map(tasks.map((task, index): [string, number] => [canonical(task), index]).toReversed());
    });
  }

  /** null: the environment has no tasks. */
  async #published(): Promise<Split[] | null> {
    if (this.environment === null) return null;
    return this.#splits.get('', async (signal) => {
      const rows = await orElse(this.#asked('splits', null, signal), async () => null);
      if (rows === null) return null;
      if (!Array.isArray(rows)) throw notOpenEnv('sent no list of splits');
      return rows.map(readSplit);
    });
  }

  /** Whether the environment has tasks. Throws `invalid_split`: the server itself would answer 500. */
  async #known(split: string): Promise<boolean> {
    const published = await this.#published();
    if (!(published ?? [ONLY_SPLIT]).some(({ name }) => name === split)) throw new PalestraError('invalid_split');
    return published !== null;
  }

  async #asked(route: string, body: JsonObject | null, signal: AbortSignal): Promise<JsonValue> {
    const path = `/${encodeURIComponent(this.environment!)}/${route}`;
    const answer = await (body === null ? this.connection.get(path, signal) : this.connection.post(path, body, 'idempotent', signal));
    if (answer.status === 501) throw new NotImplemented(route);
    if (answer.status !== 200) throw openingError(answer);
    return readJson(answer.body.toString('utf8'), `an answer on ${route}`);
  }
}

/** An answer, or what stands in for it where the environment did not implement its route. */
async function orElse(asked: Promise<JsonValue>, other: () => Promise<JsonValue>): Promise<JsonValue> {
  try {
    return await asked;
  } catch (error) {
    if (!(error instanceof NotImplemented)) throw error;
    return other();
  }
}

function openingError({ status, body }: HttpAnswer): PalestraError {
  const text = httpErrorText(status, body.toString('utf8'));
  if (status === 400) return new PalestraError('invalid_index');
  if (status === 422) return new PalestraError('invalid_request', { detail: text, relayed: true });
  if (status === 502 || status === 503) return new PalestraError('backend_unreachable', { retryAfterSeconds: 2 });
  return new PalestraError('environment_failed', { detail: text, relayed: true });
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
