import { systemClock } from '@palestra/kit';
import { type GroupCandidate, type JsonObject, PalestraError, type TextBlock } from '@palestra/protocol';
import { type BackendCall, ToolFailedError, type ToolCallResult } from './ports/backend-call.ts';
import { type Backend, type BackendCreate, type BackendSession, taskOf } from './ports/backend.port.ts';
import type { Caller, EnvironmentDirectory, HostedEnvironment } from './ports/directory.port.ts';
import { defaultSessionPolicy, type SessionPolicy } from './ports/session-policy.ts';

/** A small real environment in this process, for the tests of the engine and of the routes. It counts every execution. */

const text = (value: string): TextBlock => ({ text: value, detail: null, type: 'text' });
const FOREVER_MS = 86_400_000;
const VARIANTS = ['mathenv', 'slowenv', 'brokenenv', 'ctorenv'];
const TASKS = [
  { q: '1+1', a: '2' },
  { q: '2+2', a: '4' },
];
const TOOLS = {
  tools: ['boom', 'echo', 'slow', 'spaces', 'submit'].map((name) => ({ name, description: name, input_schema: null })),
  terminal_tool: null,
  supports_score_group: true,
  message_block_types: ['text', 'image'],
};

export class InProcessBackend implements Backend {
  /** Executions of tools, by session. */
  readonly executions = new Map<string, number>();
  readonly deleted: string[] = [];
  /** Constructors that were told to stop. */
  readonly givenUp: string[] = [];
  /** From now on that never ends. */
  stuck: 'constructor' | 'setup' | 'call' | 'answers' | null = null;
  readonly secrets = new Map<string, BackendCreate['secrets']>();
  readonly #sessions = new Map<string, { create: BackendCreate; setup: Promise<void>; count: number }>();

  async environments(): Promise<string[]> {
    return VARIANTS;
  }
  async tools() {
    return TOOLS;
  }
  async splits() {
    return [{ name: 'train', type: 'train' as const }];
  }
  async tasks(_env: string | null, split: string) {
    if (split === 'indexed') throw new PalestraError('tasks_not_listable');
    if (split !== 'train') throw new PalestraError('invalid_split');
    return TASKS;
  }
  async numTasks(env: string | null, split: string): Promise<number> {
    return (await this.taskRange(env, split, null, null)).length;
  }
  async task(env: string | null, split: string, index: number) {
    const task = (await this.tasks(env, split)).at(index);
    if (task === undefined) throw new PalestraError('invalid_index');
    return task;
  }
  async taskRange(env: string | null, split: string, start: number | null, stop: number | null) {
    return (await this.tasks(env, split === 'indexed' ? 'train' : split)).slice(start ?? 0, stop ?? undefined);
  }

  async create(create: BackendCreate, signal: AbortSignal): Promise<JsonObject> {
    if (create.env === 'ctorenv') throw new PalestraError('environment_failed', { detail: 'ValueError: ctor exploded' });
    const asked = taskOf(create);
    const task = asked.kind === 'spec' ? (asked.spec as JsonObject) : await this.task(null, asked.split, asked.index);
    const constructMs = this.stuck === 'constructor' ? FOREVER_MS : Number((task as JsonObject)['construct_ms'] ?? 5);
    await systemClock.sleep(constructMs, (task as JsonObject)['deaf'] === true ? undefined : signal).catch((error: unknown) => {
      this.givenUp.push(create.sid);
      throw error;
    });
    this.secrets.set(create.sid, create.secrets);
    const setupMs = Number((task as JsonObject)['setup_ms'] ?? (create.env === 'slowenv' ? 400 : 0));
    const setup = systemClock.sleep(this.stuck === 'setup' ? FOREVER_MS : setupMs).then(() => {
      if (create.env === 'brokenenv') throw new PalestraError('setup_failed', { detail: 'ValueError: setup exploded' });
    });
    setup.catch(() => {});
    this.#sessions.set(create.sid, { create, setup, count: 0 });
    return { sid: create.sid };
  }

  session(ref: JsonObject): BackendSession {
    const sid = String(ref['sid']);
    const open = () => {
      const session = this.#sessions.get(sid);
      if (session === undefined) throw new PalestraError('session_lost');
      return session;
    };
    // Servers at a URL have no question for setup alone.
    const task = this.#sessions.get(sid)?.create.task;
    const untold = task?.kind === 'spec' && (task.spec as JsonObject)['ready'] === false;
    return {
      ...(!untold && { ready: async () => open().setup }),
      prompt: async () => {
        await open().setup;
        if (this.stuck === 'answers') await systemClock.sleep(FOREVER_MS);
        const { value } = Object.values(open().create.secrets)[0] ?? {};
        return [text(value === undefined ? '1+1' : `1+1, the key is ${value}`)];
      },
      messages: async () => {
        await open().setup;
        if (this.stuck === 'answers') await systemClock.sleep(FOREVER_MS);
        return [{ role: 'user', blocks: [text('1+1')], detail: null }];
      },
      taskTools: async () => {
        if (this.stuck === 'answers') await systemClock.sleep(FOREVER_MS);
        return TOOLS;
      },
      call: async (call) => {
        await open().setup;
        if (call.mayHaveRun) throw new PalestraError('session_lost');
        const session = open();
        this.executions.set(sid, (this.executions.get(sid) ?? 0) + 1);
        session.count += 1;
        if (this.stuck === 'call') await systemClock.sleep(FOREVER_MS);
        const result = await runTool(call, session);
        // The process may have died under a running tool.
        open();
        return result;
      },
      scoreGroup: async (candidates: GroupCandidate[]) => {
        if (candidates.length < 2) throw new ToolFailedError('need two');
        return JSON.stringify({ scores: candidates.map((_candidate, index) => ({ reward: index, metadata: null })) });
      },
      ping: async () => {
        open();
      },
      delete: async () => {
        this.#sessions.delete(sid);
        this.deleted.push(sid);
      },
    };
  }

  /** What an API restart does to environments in the same process. */
  forgetAll(): void {
    this.#sessions.clear();
  }

  async close(): Promise<void> {}
}

/** For tests of state and of secrets. */
const UNLISTED = new Set(['count', 'random', 'secret']);
const sayings: Record<string, (input: JsonObject, session: { create: BackendCreate; count: number }) => string> = {
  spaces: ({ n }) => ' '.repeat(Number(n ?? 0)),
  echo: ({ text: said }) => String(said),
  count: (_input, { count }) => `call ${count}`,
  random: () => String(Math.random()),
  secret: (_input, { create }) => Object.values(create.secrets)[0]?.value ?? 'none',
};

async function runTool({ tool, input }: BackendCall, session: { create: BackendCreate; count: number }): Promise<ToolCallResult> {
  const n = Number(input['n'] ?? 0);
  if (tool === 'boom') throw new ToolFailedError(`line one\nline two${' and on'.repeat(n)}`);
  if (tool === 'judge') throw new ToolFailedError('Infrastructure failure: the judge does not respond');
  if (tool === 'slow') await systemClock.sleep(n);
  const known = UNLISTED.has(tool) || TOOLS.tools.some(({ name }) => name === tool);
  if (!known) {
    const error = `'${tool}' is not a valid tool`;
    return {
      text: JSON.stringify({ ok: false, error, reason: 'not_found' }),
      ok: false,
      reason: 'not_found',
      reward: null,
      finished: false,
    };
  }
  const said = sayings[tool]?.(input, session) ?? `${tool} done`;
  const finished = tool === 'submit';
  const reward = finished ? 1 : null;
  const output = { blocks: [text(said)], metadata: null, reward, finished };
  return { text: JSON.stringify({ ok: true, output }), ok: true, reason: null, reward, finished };
}

export const testCaller = (org: string): Caller => ({
  userId: `user-${org}`,
  orgId: org,
  orgName: org,
  keyId: null,
  scopes: ['sessions'],
  anonymous: false,
  maxSessions: { key: null, org: null },
});

/** One environment, `acme/math`, which everybody may use. */
export class OneEnvironmentDirectory implements EnvironmentDirectory {
  readonly hosted: HostedEnvironment;

  constructor(
    readonly backend: Backend,
    readonly options: { policy?: Partial<SessionPolicy>; owned?: boolean; fallback?: boolean } = {},
  ) {
    const policy = { ...defaultSessionPolicy, ...options.policy };
    this.hosted = { environmentId: 'e1', versionId: 'v1', owner: 'acme', name: 'math', backend, policy, owned: options.owned ?? false };
  }

  async resolve(deployment: string | null): Promise<HostedEnvironment> {
    const known = deployment === 'acme/math' || deployment === 'math';
    if (!known && !this.options.fallback) throw new PalestraError('deployment_not_found');
    return this.hosted;
  }

  async version(versionId: string): Promise<HostedEnvironment> {
    if (versionId !== this.hosted.versionId) throw new PalestraError('session_lost');
    return this.hosted;
  }
}
