import { systemClock } from '@palestra/kit';
import {
  type GroupCandidate,
  type GroupScore,
  type Message,
  PalestraError,
  type OutputBlock,
  type TaskSpec,
  type ToolsAnswer,
} from '@palestra/protocol';
import { z } from 'zod';
import type { Environment, Session as SessionContext } from '../definition.ts';
import { flattenMessages } from './conversation.ts';
import { describeError, errorText } from './describe-error.ts';
import { ToolGate } from './tool-gate.ts';
import { type CallResult, floatText, quoted, refuse, succeed, toBlocks } from './tool-output.ts';
import { type AnyTool, ToolSet } from './tool-set.ts';

/** The tool or the judge raised an error. `message` is its text without the type, as the reference server sends it. */
export class ToolRaisedError extends Error {
  constructor(cause: unknown) {
    super(errorText(cause), { cause });
    this.name = 'ToolRaisedError';
  }
}

export interface EpisodeOptions {
  sid: string;
  environment: Environment;
  /** The tools of the environment, sorted by name. */
  tools: ToolSet;
  /** The toolset that the client chose, or null. */
  toolsetName: string | null;
  task: TaskSpec;
  secrets: Record<string, string>;
  /** Receives errors of `teardown`, which no client gets. */
  warn: (message: string, error: unknown) => void;
}

/** How long to wait for a cancelled setup to end. */
const SETUP_GRACE_MS = 2_000;

type AnyContext = SessionContext<never, never>;

/** A live episode of an environment. */
export class Episode {
  readonly #options: EpisodeOptions;
  readonly #context: AnyContext;
  readonly #abort = new AbortController();
  readonly #gate = new ToolGate();
  #ready: Promise<void> | null = null;
  /** Null while setup runs. */
  #setup: { error: PalestraError | null } | null = null;
  #taskTools: Promise<ToolSet> | null = null;
  #toolset = new ToolSet({});
  #finished = false;

  private constructor(options: EpisodeOptions) {
    this.#options = options;
    const { sid, task, secrets } = options;
    this.#context = { sid, task, secrets, state: undefined, signal: this.#abort.signal } as unknown as AnyContext;
  }

  /** Runs the environment's `create`, then starts its `setup` in the background. */
  static async open(options: EpisodeOptions): Promise<Episode> {
    const episode = new Episode(options);
    const { create } = options.environment;
    try {
      if (create) episode.#context.state = (await create(episode.#context as never)) as never;
    } catch (error) {
      throw asEnvironmentError('environment_failed', error);
    }
    try {
      await episode.#chooseToolset();
    } catch (error) {
      await episode.close();
      throw error;
    }
    episode.#ready = episode.#runSetup();
    return episode;
  }

  async #chooseToolset(): Promise<void> {
    const { toolsetName, environment } = this.#options;
    if (toolsetName === null) return;
    const toolsets = environment.toolsets ?? {};
    if (!Object.hasOwn(toolsets, toolsetName)) {
      const names = Object.keys(toolsets).toSorted().map(quoted).join(', ');
      throw new PalestraError('unknown_toolset', { detail: `unknown toolset ${quoted(toolsetName)}; valid options are [${names}]` });
    }
    try {
      this.#toolset = new ToolSet(await toolsets[toolsetName]!(this.#context));
    } catch (cause) {
      throw new PalestraError('unknown_toolset', { detail: describeError(cause), cause });
    }
  }

  async #runSetup(): Promise<void> {
    let error: PalestraError | null = null;
    try {
      await this.#options.environment.setup?.(this.#context);
    } catch (raised) {
      error = asEnvironmentError('setup_failed', raised);
    }
    this.#setup = { error };
  }

  get isSettingUp(): boolean {
    return this.#setup === null && !this.#abort.signal.aborted;
  }

  /** Waits for setup. Rejects with its error, the signal's reason, or `session_deleted`. */
  async ready(signal?: AbortSignal): Promise<void> {
    if (this.isSettingUp) await this.#settled(signal);
    this.assertAlive();
  }

  /** Throws the error of a deleted session or a failed setup. */
  assertAlive(): void {
    if (this.#abort.signal.aborted) throw new PalestraError('session_deleted');
    if (this.#setup?.error) throw this.#setup.error;
  }

  #settled(signal?: AbortSignal): Promise<void> {
    return new Promise<void>((resolve, reject) => {
      const ended = this.#abort.signal;
      const onEnded = () => settle(resolve);
      const onAbort = () => settle(() => reject(signal!.reason as Error));
      const settle = (how: () => void) => {
        ended.removeEventListener('abort', onEnded);
        signal?.removeEventListener('abort', onAbort);
        how();
      };
      if (signal?.aborted) return onAbort();
      ended.addEventListener('abort', onEnded, { once: true });
      signal?.addEventListener('abort', onAbort, { once: true });
      void this.#ready!.then(onEnded);
    });
  }

  async prompt(): Promise<OutputBlock[]> {
    const { prompt, messages } = this.#options.environment;
    return this.#guard(async () => (prompt ? toBlocks(await prompt(this.#context)) : flattenMessages(await messages!(this.#context))));
  }

  async messages(): Promise<Message[]> {
    const { prompt, messages } = this.#options.environment;
    return this.#guard(async () =>
      prompt ? [{ role: 'user', blocks: toBlocks(await prompt(this.#context)), detail: null }] : messages!(this.#context),
    );
  }

  /** The tools of the environment, of the task and of the chosen toolset, in this order. Does not wait for setup. */
  async tools(answer: ToolsAnswer): Promise<ToolsAnswer> {
    this.assertAlive();
    const taskTools = await this.#guard(() => this.#toolsOfTask());
    const terminal = this.#toolset.terminal ?? answer.terminal_tool ?? taskTools.terminal;
    const kept = [...answer.tools, ...taskTools.specs].filter(({ name }) => this.#toolset.get(name) === undefined);
    const tools = [...kept, ...this.#toolset.specs].filter(({ name }) => name !== terminal?.name);
    return { ...answer, tools, terminal_tool: terminal };
  }

  /**
   * Runs a tool once; setup must have ended. A mistake of the policy is a result; `ToolRaisedError` is a failure of the tool. A synchronous tool
   * without running calls before it returns its result without a promise.
   */
  call(name: string, input: unknown): CallResult | Promise<CallResult> {
    this.assertAlive();
    const tool = this.#toolset.get(name) ?? this.#options.tools.get(name);
    if (tool !== undefined) return this.#callTool(name, tool, input);
    return this.#guard(() => this.#toolsOfTask()).then((tools) => this.#callTool(name, tools.get(name), input));
  }

  #callTool(name: string, tool: AnyTool | undefined, input: unknown): CallResult | Promise<CallResult> {
    if (!tool) return refuse('not_found', `${quoted(name)} is not a valid tool`);
    if (this.#finished) return refuseFinished(name);
    const entered = this.#gate.enter(name, tool.terminal ? 'exclusive' : (tool.mode ?? 'serial'));
    if (entered instanceof Promise) return entered.then((release) => this.#runAlone(release, name, tool, input));
    return this.#runAlone(entered, name, tool, input);
  }

  #runAlone(release: () => void, name: string, tool: AnyTool, input: unknown): CallResult | Promise<CallResult> {
    let result: CallResult | Promise<CallResult>;
    try {
      if (this.#abort.signal.aborted) throw new PalestraError('session_deleted');
      result = this.#finished ? refuseFinished(name) : this.#run(name, tool, input);
    } catch (error) {
      release();
      throw error;
    }
    if (result instanceof Promise) return result.finally(release);
    release();
    return result;
  }

  #run(name: string, tool: AnyTool, input: unknown): CallResult | Promise<CallResult> {
    const parsed = tool.input ? parseInput(tool.input, input) : { success: true as const, data: {} };
    return parsed instanceof Promise ? parsed.then((done) => this.#runParsed(name, tool, done)) : this.#runParsed(name, tool, parsed);
  }

  #runParsed(name: string, tool: AnyTool, parsed: ParsedInput): CallResult | Promise<CallResult> {
    if (!parsed.success) {
      const issues = parsed.error.issues.map(({ code, path, message }) => ({ type: code, loc: path, msg: message }));
      return refuse('input_validation', `Tool input validation error: ${JSON.stringify(issues)}`);
    }
    const raised = (error: unknown) => {
      throw new ToolRaisedError(error);
    };
    try {
      const returned = tool.run(parsed.data as never, this.#context);
      if (isThenable(returned))
        return Promise.resolve(returned)
          .then(succeed)
          .then((result) => this.#recordEnd(name, result), raised);
      return this.#recordEnd(name, succeed(returned));
    } catch (error) {
      return raised(error);
    }
  }

  #recordEnd(name: string, result: CallResult): CallResult {
    // Only the first finished result counts, so an episode has one final result.
    if (this.#finished) return refuseFinished(name);
    this.#finished = result.finished;
    return result;
  }

  /** The scores as JSON text. Does not change the episode. */
  async scoreGroup(candidates: GroupCandidate[]): Promise<string> {
    let scores: (number | GroupScore)[];
    try {
      scores = await this.#options.environment.scoreGroup!(candidates, this.#context);
      if (scores.length !== candidates.length) {
        throw new Error(`score_group returned ${scores.length} scores for ${candidates.length} candidates`);
      }
      // Environments run without type checks.
      const rewards = scores.map((score: number | GroupScore | null) => (typeof score === 'object' ? score?.reward : score));
      const wrong = rewards.findIndex((reward) => !Number.isFinite(reward));
      if (wrong !== -1) throw new TypeError(`the score of candidate ${wrong} must be a finite number, not ${String(rewards[wrong])}`);
    } catch (error) {
      throw new ToolRaisedError(error);
    }
    const items = scores.map((score) => {
      const { reward, metadata = null } = typeof score === 'number' ? { reward: score } : score;
      return `{"reward":${floatText(reward)},"metadata":${JSON.stringify(metadata)}}`;
    });
    return `{"scores":[${items.join(',')}]}`;
  }

  /** Rejects waiting requests, cancels a running setup, then runs `teardown`. */
  async close(): Promise<void> {
    if (this.#abort.signal.aborted) return;
    this.#abort.abort(new PalestraError('session_deleted'));
    // Teardown needs the results of setup. A setup that ignores its signal is not awaited.
    if (this.#setup === null) await Promise.race([this.#ready, systemClock.sleep(SETUP_GRACE_MS)]);
    try {
      await this.#options.environment.teardown?.(this.#context);
    } catch (error) {
      this.#options.warn(`teardown of session ${this.#options.sid} failed`, error);
    }
  }

  #toolsOfTask(): Promise<ToolSet> {
    this.#taskTools ??= (async () => new ToolSet((await this.#options.environment.taskTools?.(this.#context)) ?? {}))();
    return this.#taskTools;
  }

  async #guard<T>(operation: () => Promise<T>): Promise<T> {
    try {
      return await operation();
    } catch (error) {
      throw asEnvironmentError('environment_failed', error);
    }
  }
}

type ParsedInput = z.ZodSafeParseResult<unknown>;

/** Schemas with an asynchronous refinement. The first synchronous attempt detects them, so the refinement runs twice then. */
const asynchronous = new WeakSet<z.ZodType>();

function parseInput(schema: z.ZodType, input: unknown): ParsedInput | Promise<ParsedInput> {
  if (asynchronous.has(schema)) return schema.safeParseAsync(input);
  try {
    return schema.safeParse(input);
  } catch (error) {
    if (!(error instanceof z.core.$ZodAsyncError)) throw error;
    asynchronous.add(schema);
    return schema.safeParseAsync(input);
  }
}

const isThenable = <T>(value: T | PromiseLike<T>): value is PromiseLike<T> =>
  typeof (value as { then?: unknown } | null)?.then === 'function';

function refuseFinished(name: string): CallResult {
  const reason = 'the episode has finished (a tool returned finished=True), so no further tool calls are accepted.';
  return refuse('episode_finished', `${quoted(name)} was not run: ${reason}`);
}

function asEnvironmentError(code: 'environment_failed' | 'setup_failed', error: unknown): PalestraError {
  return error instanceof PalestraError ? error : new PalestraError(code, { detail: describeError(error), cause: error });
}
