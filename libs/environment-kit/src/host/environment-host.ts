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
import { type Guarantees, guaranteesOf } from './guarantees.ts';
import { TaskSource } from './task-source.ts';
import { Tombstones } from './tombstones.ts';
import { type CallResult, quoted } from './tool-output.ts';
import { sortedByName, ToolSet } from './tool-set.ts';

export interface CreateRequest {
  sid: string;
  /** Null for the first environment. */
  env: string | null;
  task: { kind: 'spec'; spec: TaskSpec } | { kind: 'index'; split: string; index: number };
  toolsetName: string | null;
  secrets: Record<string, string>;
  /** While this returns true the session does not expire, for a caller with its own idle timeout. */
  isHeld?: () => boolean;
}

export interface HostOptions {
  clock?: Clock;
  /** A session without ping or request for this long is deleted. Default: 15 minutes. */
  idleTimeoutMs?: number;
  warn?: (message: string, error: unknown) => void;
}

/** A session id in use: reserved while `create` runs (`episode` is null), then live. */
interface HostedSession {
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

/** Environments and their live sessions, independent of the transport. Every error is a `PalestraError` or `ToolRaisedError`. */
export class EnvironmentHost {
  #hosted: ReadonlyMap<string, Hosted>;
  readonly #sessions = new Map<string, HostedSession>();
  readonly #ended = new Tombstones();
  readonly #clock: Clock;
  readonly #idleTimeoutMs: number;
  readonly #warn: (message: string, error: unknown) => void;
  #stopReaper: () => void;

  /** The first environment is the default. */
  constructor(environments: Environment[], options: HostOptions = {}) {
    this.#hosted = hostAll(environments);
    this.#clock = options.clock ?? systemClock;
    this.#idleTimeoutMs = options.idleTimeoutMs ?? 900_000;
    this.#warn = options.warn ?? ((message, error) => console.error(`${message}: ${describeError(error)}`));
    this.#stopReaper = this.#clock.after(REAP_EVERY_MS, () => this.#reap());
  }

  /** New sessions use these environments; open ones keep theirs. Throws for environments that cannot be hosted, and changes nothing then. */
  replace(environments: Environment[]): void {
    this.#hosted = hostAll(environments);
  }

  /** Lower-case names, the default environment first. */
  environments(): string[] {
    return [...this.#hosted.keys()];
  }
  has(env: string): boolean {
    return this.#hosted.has(env.toLowerCase());
  }
  tools(env: string | null): ToolsAnswer {
    return this.#find(env).answer;
  }
  guarantees(env: string | null): Guarantees {
    return guaranteesOf(this.#find(env).environment);
  }
  splits(env: string | null): Split[] {
    return this.#find(env).environment.splits;
  }
  async tasks(env: string | null, split: string): Promise<readonly TaskSpec[]> {
    return this.#guard(() => this.#find(env).tasks.all(split));
  }
  async numTasks(env: string | null, split: string): Promise<number> {
    return this.#guard(() => this.#find(env).tasks.count(split));
  }
  async task(env: string | null, split: string, index: number): Promise<TaskSpec> {
    return this.#guard(() => this.#find(env).tasks.at(split, index));
  }
  async taskRange(env: string | null, split: string, start: number | null, stop: number | null): Promise<TaskSpec[]> {
    return this.#guard(() => this.#find(env).tasks.range(split, start, stop));
  }

  /** Resolves when the environment's `create` has succeeded. A failed create releases the session id. */
  async create(request: CreateRequest): Promise<void> {
    const { sid, task, toolsetName } = request;
    // The id is reserved before any slow work, so that one of two concurrent requests fails.
    if (this.#sessions.has(sid)) throw new PalestraError('session_exists');
    const hosted = this.#find(request.env);
    const session: HostedSession = { episode: null, hosted, lastSeenAt: this.#clock.now(), isHeld: request.isHeld ?? (() => false) };
    this.#sessions.set(sid, session);
    try {
      const spec = task.kind === 'spec' ? task.spec : await this.#guard(() => hosted.tasks.at(task.split, task.index));
      const { environment, tools } = hosted;
      const episode = await Episode.open({ sid, environment, tools, toolsetName, task: spec, secrets: request.secrets, warn: this.#warn });
      if (this.#sessions.get(sid) !== session) {
        await episode.close();
        throw new PalestraError('session_deleted');
      }
      session.episode = episode;
      session.lastSeenAt = this.#clock.now();
    } catch (error) {
      if (this.#sessions.get(sid) === session) this.#sessions.delete(sid);
      throw error;
    }
  }

  ping(sid: string): void {
    this.#session(sid);
  }

  isSettingUp(sid: string): boolean {
    return this.#session(sid).episode.isSettingUp;
  }

  /** Waits for setup and rejects with its error. Every method below except `taskTools` waits for setup. */
  async ready(sid: string, signal?: AbortSignal): Promise<void> {
    await this.#session(sid).episode.ready(signal);
  }

  async prompt(sid: string, signal?: AbortSignal): Promise<OutputBlock[]> {
    return (await this.#readyEpisode(sid, signal)).prompt();
  }
  async messages(sid: string, signal?: AbortSignal): Promise<Message[]> {
    return (await this.#readyEpisode(sid, signal)).messages();
  }
  async taskTools(sid: string): Promise<ToolsAnswer> {
    const { episode, hosted } = this.#session(sid);
    return episode.tools(hosted.answer);
  }
  /** Never throws synchronously. A synchronous result is returned without a promise. */
  call(sid: string, name: string, input: JsonObject, signal?: AbortSignal): CallResult | Promise<CallResult> {
    try {
      const { episode } = this.#session(sid);
      return episode.isSettingUp ? episode.ready(signal).then(() => episode.call(name, input)) : episode.call(name, input);
    } catch (error) {
      return Promise.reject(error as Error);
    }
  }

  /** Throws `score_group_unsupported`. `env` is the name of the environment in the request. */
  assertScoresGroups(sid: string, env: string | null): void {
    const { environment } = this.#session(sid).hosted;
    if (environment.scoreGroup) return;
    const name = quoted(env ?? environment.name.toLowerCase());
    throw new PalestraError('score_group_unsupported', { detail: `Environment ${name} does not implement score_group` });
  }
  async scoreGroup(sid: string, env: string | null, candidates: GroupCandidate[], signal?: AbortSignal): Promise<string> {
    const episode = await this.#readyEpisode(sid, signal);
    this.assertScoresGroups(sid, env);
    return episode.scoreGroup(candidates);
  }

  /** Cancels a running setup, rejects waiting requests, and runs `teardown`. Idempotent, also for unknown ids. */
  async delete(sid: string): Promise<void> {
    const session = this.#sessions.get(sid);
    if (!session) return;
    this.#sessions.delete(sid);
    this.#ended.add(sid);
    await session.episode?.close();
  }

  /** Deletes every session. */
  async close(): Promise<void> {
    this.#stopReaper();
    await Promise.all([...this.#sessions.keys()].map((sid) => this.delete(sid)));
  }

  async #readyEpisode(sid: string, signal?: AbortSignal): Promise<Episode> {
    const { episode } = this.#session(sid);
    await episode.ready(signal);
    return episode;
  }

  #find(env: string | null): Hosted {
    const hosted = env === null ? this.#hosted.values().next().value : this.#hosted.get(env.toLowerCase());
    if (!hosted) throw new PalestraError('unknown_variant', { detail: `unknown environment ${quoted(env!)}` });
    return hosted;
  }

  #session(sid: string): HostedSession & { episode: Episode } {
    const session = this.#sessions.get(sid);
    if (!session?.episode) throw new PalestraError(this.#ended.has(sid) && !session ? 'session_deleted' : 'session_not_found');
    session.lastSeenAt = this.#clock.now();
    return session as HostedSession & { episode: Episode };
  }

  #reap(): void {
    const now = this.#clock.now();
    for (const [sid, session] of this.#sessions) {
      if (session.isHeld()) session.lastSeenAt = now;
      else if (session.episode && now - session.lastSeenAt > this.#idleTimeoutMs) void this.delete(sid);
    }
    this.#stopReaper = this.#clock.after(REAP_EVERY_MS, () => this.#reap());
  }

  async #guard<T>(operation: () => Promise<T>): Promise<T> {
    try {
      return await operation();
    } catch (error) {
      if (error instanceof PalestraError) throw error;
      throw new PalestraError('environment_failed', { detail: describeError(error), cause: error });
    }
  }
}

function hostAll(environments: Environment[]): ReadonlyMap<string, Hosted> {
  const hosted = new Map<string, Hosted>();
  for (const environment of environments) {
    const key = environment.name.toLowerCase();
    if (hosted.has(key)) throw new Error(`two environments are named ${key}`);
    hosted.set(key, host(environment));
  }
  if (hosted.size === 0) throw new Error('no environment to host');
  return hosted;
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
