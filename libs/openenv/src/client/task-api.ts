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
import { type HttpAnswer, type OpenEnvConnection, TRANSIENT, unreachable, withDeadline } from './connection.ts';
import { notOpenEnv, readJson, httpErrorText } from '../wire/server-replies.ts';

/** Each request builds an environment on the server, so answers are cached this long. */
const MAX_AGE_MS = 60_000;
const DEADLINE_MS = 120_000;
/** Lists of all tasks are cached longer. */
const POSITIONS_MAX_AGE_MS = 600_000;
/** Splits with more tasks are not searched for a task without position. */
const MAX_SEARCHED = 50_000;
const TYPES: readonly JsonValue[] = SPLIT_TYPES;

/** The split and task of an environment without tasks: its reset. */
const ONLY_SPLIT: Split = { name: 'train', type: 'train' };
const ONLY_TASK: TaskSpec = {};

/** The environment does not implement this route of the Task API. */
class NotImplemented extends Error {}

/** Caches answers for a while, but no failures. */
class Cache<T> {
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
 * Splits and tasks of a server by its Task API (docs/reference/openenv.md#task-api; from 0.4). An environment without it has the split
 * `train` with one task, `{}`.
 */
export class TaskApi {
  readonly #splits = new Cache<Split[] | null>(MAX_AGE_MS);
  readonly #counts = new Cache<number>(MAX_AGE_MS);
  readonly #positions = new Cache<Map<string, number>>(POSITIONS_MAX_AGE_MS);

  constructor(
    readonly connection: OpenEnvConnection,
    /** In the server's spelling; null: its version has no Task API. */
    readonly environment: string | null,
  ) {}

  async splits(): Promise<Split[]> {
    return (await this.#published()) ?? [ONLY_SPLIT];
  }

  /** Whether `{split, index}` chooses a task. */
  async hasTasks(): Promise<boolean> {
    return (await this.#published()) !== null;
  }

  async tasks(split: string, signal: AbortSignal): Promise<TaskSpec[]> {
    if (!(await this.#hasTasksIn(split))) return [ONLY_TASK];
    try {
      return listOf(await this.#request('tasks', { split }, signal));
    } catch (error) {
      throw error instanceof NotImplemented ? new PalestraError('tasks_not_listable') : error;
    }
  }

  async count(split: string): Promise<number> {
    if (!(await this.#hasTasksIn(split))) return 1;
    return this.#counts.get(split, async (signal) => {
      const answer = await orElse(this.#request('num_tasks', { split }, signal), async () => ({
        num_tasks: (await this.tasks(split, signal)).length,
      }));
      const count = isObject(answer) ? toPlainNumber(answer['num_tasks']) : null;
      if (count === null) throw notOpenEnv('sent no number of tasks');
      return count;
    });
  }

  async task(split: string, index: number, signal: AbortSignal): Promise<TaskSpec> {
    const position = await this.position(split, index);
    if (!(await this.hasTasks())) return ONLY_TASK;
    const listed = async () => ({ task: (await this.tasks(split, signal))[position] });
    const answer = await orElse(this.#request('task', { split, index: position }, signal), listed);
    if (!isObject(answer) || answer['task'] === undefined) throw notOpenEnv('sent no task');
    return answer['task'];
  }

  /** `start`, `stop` as in a Python slice; null: default. */
  async range(split: string, start: number | null, stop: number | null, signal: AbortSignal): Promise<TaskSpec[]> {
    const count = await this.count(split);
    const clamp = (bound: number) => Math.min(Math.max(bound < 0 ? count + bound : bound, 0), count);
    const [first, end] = [clamp(start ?? 0), clamp(stop ?? count)];
    if (first >= end) return [];
    if (!(await this.hasTasks())) return [ONLY_TASK];
    const listed = async () => ({ tasks: (await this.tasks(split, signal)).slice(first, end) });
    return listOf(await orElse(this.#request('task_range', { split, start: first, stop: end }, signal), listed));
  }

  /** Converts an index to a position from 0. Throws `invalid_split`, `invalid_index`. */
  async position(split: string, index: number): Promise<number> {
    const count = await this.count(split);
    const position = index < 0 ? count + index : index;
    if (!Number.isInteger(position) || position < 0 || position >= count) throw new PalestraError('invalid_index');
    return position;
  }

  /**
   * The position of a task that this server listed; null for any other task. `reset` chooses tasks by position only, and clients send specs
   * back without it.
   */
  async positionOf(spec: TaskSpec): Promise<{ split: string; index: number } | null> {
    const key = canonical(spec);
    for (const { name } of (await this.#published()) ?? []) {
      const index = (await this.#positionsOf(name)).get(key);
      if (index !== undefined) return { split: name, index };
    }
    return null;
  }

  #positionsOf(split: string): Promise<Map<string, number>> {
    return this.#positions.get(split, async (signal) => {
      const count = await this.count(split);
      const tasks = count > MAX_SEARCHED ? [] : await this.range(split, null, null, signal).catch(emptyIfNotListable);
      // The first of equal tasks wins.
      return new Map(tasks.map((task, index): [string, number] => [canonical(task), index]).toReversed());
    });
  }

  /** null: the environment has no tasks. */
  async #published(): Promise<Split[] | null> {
    if (this.environment === null) return null;
    return this.#splits.get('', async (signal) => {
      const rows = await orElse(this.#request('splits', null, signal), async () => null);
      if (rows === null) return null;
      if (!Array.isArray(rows)) throw notOpenEnv('sent no list of splits');
      return rows.map(readSplit);
    });
  }

  /** Whether the environment has tasks. Throws `invalid_split`, for which the server would answer 500. */
  async #hasTasksIn(split: string): Promise<boolean> {
    const published = await this.#published();
    if (!(published ?? [ONLY_SPLIT]).some(({ name }) => name === split)) throw new PalestraError('invalid_split');
    return published !== null;
  }

  async #request(route: string, body: JsonObject | null, signal: AbortSignal): Promise<JsonValue> {
    const path = `/${encodeURIComponent(this.environment!)}/${route}`;
    const answer = await (body === null ? this.connection.get(path, signal) : this.connection.post(path, body, 'idempotent', signal));
    if (answer.status === 501) throw new NotImplemented(route);
    if (answer.status !== 200) throw openingError(answer);
    return readJson(answer.body.toString('utf8'), `an answer on ${route}`);
  }
}

/** The answer, or `other()` if the environment does not implement the route. */
async function orElse(answer: Promise<JsonValue>, other: () => Promise<JsonValue>): Promise<JsonValue> {
  try {
    return await answer;
  } catch (error) {
    if (!(error instanceof NotImplemented)) throw error;
    return other();
  }
}

function openingError({ status, body }: HttpAnswer): PalestraError {
  const text = httpErrorText(status, body.toString('utf8'));
  if (status === 400) return new PalestraError('invalid_index');
  if (status === 422) return new PalestraError('invalid_request', { detail: text, relayed: true });
  if (TRANSIENT.has(status)) return unreachable(new Error(`HTTP ${status}`));
  return new PalestraError('environment_failed', { detail: text, relayed: true });
}

function listOf(answer: JsonValue): TaskSpec[] {
  if (!isObject(answer) || !Array.isArray(answer['tasks'])) throw notOpenEnv('sent no list of tasks');
  return answer['tasks'];
}

/** A name that is a type has that type; all others are for validation. */
function readSplit(row: JsonValue): Split {
  const name = isObject(row) ? row['name'] : row;
  if (typeof name !== 'string') throw notOpenEnv('sent a split without a name');
  const type = isObject(row) && TYPES.includes(row['type']) ? row['type'] : TYPES.includes(name) ? name : 'validation';
  return { name, type: type as SplitType };
}

function emptyIfNotListable(error: unknown): TaskSpec[] {
  if (error instanceof PalestraError && error.code === 'tasks_not_listable') return [];
  throw error;
}

/** JSON text with sorted keys. */
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
