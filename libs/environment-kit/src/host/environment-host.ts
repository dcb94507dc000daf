import { type Clock, systemClock } from '@palestra/kit';
import {
  type GroupCandidate,
  type JsonObject,
  type Message,
  type OutputBlock,
  PalestraError,
  type Split,
  type TaskSpec,
  type ToolsAnswer,
} from '@palestra/protocol';
import type { Environment } from '../definition.ts';
import { describeError } from './describe-error.ts';
import { Episode } from './episode.ts';
import { TaskSource } from './task-source.ts';
import { Tombstones } from './tombstones.ts';
import { type CallResult, quoted } from './tool-output.ts';
import { sortedByName, ToolSet } from './tool-set.ts';

export interface CreateRequest {
  sid: string;
  /** null = the first environment. */
  env: string | null;
  task: { kind: 'spec'; spec: TaskSpec } | { kind: 'index'; split: string; index: number };
  toolsetName: string | null;
  secrets: Record<string, string>;
  /** A session counts as used as long as this answers true: for a caller who keeps its own idle time. */
  isHeld?: () => boolean;
}

export interface HostOptions {
  clock?: Clock;
  /** A session without a ping or request for this long is deleted; default 15 minutes. */
  idleTimeoutMs?: number;
  warn?: (message: string, error: unknown) => void;
}

/** A SID that is taken: reserved while `create` runs (episode null), then live. */
interface Seat {
  episode: Episode | null;
  hosted: Hosted;
  lastSeenAt: number;
  isHeld: () => boolean;
}

interface Hosted {
  environment: Environment;
  tasks: TaskSource;
  tools: ToolSet;
  answer: ToolsAnswer;
}

const REAP_EVERY_MS = 5_000;
const MESSAGE_BLOCK_TYPES = ['text', 'image', 'reasoning', 'tool_call', 'tool_result'];

/** Several environments and their live sessions, without any transport. Every error is a `PalestraError` or `ToolRaisedError`. */
export class EnvironmentHost {
  readonly #hosted = new Map<string, Hosted>();
  readonly #seats = new Map<string, Seat>();
  readonly #ended = new Tombstones();
  readonly #clock: Clock;
  readonly #idleTimeoutMs: number;
  readonly #warn: (message: string, error: unknown) => void;
  #stopReaper: () => void;

  /** The first environment is the default one. */
  constructor(environments: Environment[], options: HostOptions = {}) {
    for (const environment of environments) {
      const key = environment.name.toLowerCase();
      if (this.#hosted.has(key)) throw new Error(`two environments are named ${key}`);
      this.#hosted.set(key, host(environment));
    }
    if (this.#hosted.size === 0) throw new Error('no environment to host');
    this.#clock = options.clock ?? systemClock;
    this.#idleTimeoutMs = options.idleTimeoutMs ?? 900_000;
    this.#warn = options.warn ?? ((message, error) => console.error(`${message}: ${describeError(error)}`));
    this.#stopReaper = this.#clock.after(REAP_EVERY_MS, () => this.#reap());
  }

  /** Lower-case names, the default one first. */
  environments(): string[] {
    return [...this.#hosted.keys()];
  }
  has(env: string): boolean {
    return this.#hosted.has(env.toLowerCase());
  }
  tools(env: string | null): ToolsAnswer {
    return this.#find(env).answer;
  }
  splits(env: string | null): Split[] {
    return this.#find(env).environment.splits;
  }
  async tasks(env: string | null, split: string): Promise<readonly TaskSpec[]> {
    return this.#ask(() => this.#find(env).tasks.all(split));
  }
  async numTasks(env: string | null, split: string): Promise<number> {
    return this.#ask(() => this.#find(env).tasks.count(split));
  }
  async task(env: string | null, split: string, index: number): Promise<TaskSpec> {
    return this.#ask(() => this.#find(env).tasks.at(split, index));
  }
  async taskRange(env: string | null, split: string, start: number | null, stop: number | null): Promise<TaskSpec[]> {
    return this.#ask(() => this.#find(env).tasks.range(split, start, stop));
  }

  /** Resolves when the environment's `create` succeeded; a SID whose create failed is free again. */
  async create(request: CreateRequest): Promise<void> {
    const { sid, task, toolsetName } = request;
    // Taken before anything slow: of two requests at the same moment one must lose.
    if (this.#seats.has(sid)) throw new PalestraError('session_exists');
    const hosted = this.#find(request.env);
    const seat: Seat = { episode: null, hosted, lastSeenAt: this.#clock.now(), isHeld: request.isHeld ?? (() => false) };
    this.#seats.set(sid, seat);
    try {
      const spec = task.kind === 'spec' ? task.spec : await this.#ask(() => hosted.tasks.at(task.split, task.index));
      const { environment, tools } = hosted;
      const episode = await Episode.open({ sid, environment, tools, toolsetName, task: spec, secrets: request.secrets, warn: this.#warn });
      if (this.#seats.get(sid) !== seat) {
        await episode.close();
        throw new PalestraError('session_deleted');
      }
      seat.episode = episode;
      seat.lastSeenAt = this.#clock.now();
    } catch (error) {
      if (this.#seats.get(sid) === seat) this.#seats.delete(sid);
      throw error;
    }
  }

  ping(sid: string): void {
    this.#seat(sid);
  }

  isSettingUp(sid: string): boolean {
    return this.#seat(sid).episode.isSettingUp;
  }

  /** Waits for setup and rejects as it did; every method below but `taskTools` waits by this. */
  async ready(sid: string, signal?: AbortSignal): Promise<void> {
    await this.#seat(sid).episode.ready(signal);
  }

  async prompt(sid: string, signal?: AbortSignal): Promise<OutputBlock[]> {
    return (await this.#readyEpisode(sid, signal)).prompt();
  }
  async messages(sid: string, signal?: AbortSignal): Promise<Message[]> {
    return (await this.#readyEpisode(sid, signal)).messages();
  }
  async taskTools(sid: string): Promise<ToolsAnswer> {
    const { episode, hosted } = this.#seat(sid);
    return episode.tools(hosted.answer);
  }
  /** Does not throw: what fails at once is a promise that rejects. What answers at once is no promise. */
  call(sid: string, name: string, input: JsonObject, signal?: AbortSignal): CallResult | Promise<CallResult> {
    try {
      const { episode } = this.#seat(sid);
      return episode.isSettingUp ? episode.ready(signal).then(() => episode.call(name, input)) : episode.call(name, input);
    } catch (error) {
      return Promise.reject(error as Error);
    }
  }

  /** Throws `score_group_unsupported`; `env` is how the client called the environment. */
  assertScoresGroups(sid: string, env: string | null): void {
    const { environment } = this.#seat(sid).hosted;
    if (environment.scoreGroup) return;
    const name = quoted(env ?? environment.name.toLowerCase());
    throw new PalestraError('score_group_unsupported', { detail: `Environment ${name} does not implement score_group` });
  }
  async scoreGroup(sid: string, env: string | null, candidates: GroupCandidate[], signal?: AbortSignal): Promise<string> {
    const episode = await this.#readyEpisode(sid, signal);
    this.assertScoresGroups(sid, env);
    return episode.scoreGroup(candidates);
  }

  /** Cancels a running setup, wakes its waiters, runs `teardown`. Idempotent, also for a SID that nobody knows. */
  async delete(sid: string): Promise<void> {
    const seat = this.#seats.get(sid);
    if (!seat) return;
    this.#seats.delete(sid);
    this.#ended.add(sid);
    await seat.episode?.close();
  }

  /** Deletes every session. */
  async close(): Promise<void> {
    this.#stopReaper();
    await Promise.all([...this.#seats.keys()].map((sid) => this.delete(sid)));
  }

  async #readyEpisode(sid: string, signal?: AbortSignal): Promise<Episode> {
    const { episode } = this.#seat(sid);
    await episode.ready(signal);
    return episode;
  }

  #find(env: string | null): Hosted {
    const hosted = env === null ? this.#hosted.values().next().value : this.#hosted.get(env.toLowerCase());
    if (!hosted) throw new PalestraError('unknown_variant', { detail: `unknown environment ${quoted(env!)}` });
    return hosted;
  }

  #seat(sid: string): Seat & { episode: Episode } {
    const seat = this.#seats.get(sid);
    if (!seat?.episode) throw new PalestraError(this.#ended.has(sid) && !seat ? 'session_deleted' : 'session_not_found');
    seat.lastSeenAt = this.#clock.now();
    return seat as Seat & { episode: Episode };
  }

  #reap(): void {
    const now = this.#clock.now();
    for (const [sid, seat] of this.#seats) {
      if (seat.isHeld()) seat.lastSeenAt = now;
      else if (seat.episode && now - seat.lastSeenAt > this.#idleTimeoutMs) void this.delete(sid);
    }
    this.#stopReaper = this.#clock.after(REAP_EVERY_MS, () => this.#reap());
  }

  async #ask<T>(question: () => Promise<T>): Promise<T> {
    try {
      return await question();
    } catch (error) {
      if (error instanceof PalestraError) throw error;
      throw new PalestraError('environment_failed', { detail: describeError(error), cause: error });
    }
  }
}

function host(environment: Environment): Hosted {
  const tools = new ToolSet(sortedByName(environment.tools ?? {}));
  const answer: ToolsAnswer = {
    tools: tools.specs,
    terminal_tool: tools.terminal,
    supports_score_group: environment.scoreGroup !== undefined,
    message_block_types: MESSAGE_BLOCK_TYPES,
  };
  return { environment, tasks: new TaskSource(environment), tools, answer };
}
