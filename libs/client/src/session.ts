import { newUuid } from '@palestra/kit';
import {
  type GroupCandidate,
  type GroupScore,
  type JsonObject,
  type JsonValue,
  type Message,
  type OutputBlock,
  parseJson,
  toPlainNumber,
  type RunToolOutput,
  type ToolOutput,
  type ToolsAnswer,
} from '@palestra/protocol';
import type { Connection } from './connection.ts';
import { ConnectionError, PalestraApiError, SessionTerminatedError, ToolCallError, ToolFailedError } from './errors.ts';
import { noRetry, requestRetry, withRetry } from './retry.ts';

export interface SessionOptions {
  /** `owner/name`, or a bare name of the caller's own. */
  environment: string;
  variant?: string;
  /** The task: by index of a split... */
  split?: string;
  index?: number;
  /** ...or by value. */
  taskSpec?: JsonValue;
  /** Name -> value, or value with the hosts it may be sent to. */
  secrets?: Record<string, string | { value: string; allowed_domains?: string[] }>;
  signal?: AbortSignal;
  /**
   * False: the SID is made here, which every ORS server accepts and which saves two requests. True (default): reserved by
   * `/create_session`, which also waits in the queue of a full environment.
   */
  reserve?: boolean;
  /** How often the server is told that the session is alive; 0 = never, for sessions of a few requests. */
  pingIntervalMs?: number;
}

export interface AttachOptions extends Pick<SessionOptions, 'signal' | 'pingIntervalMs'> {
  /** `owner/name`; the session itself knows it. */
  environment?: string;
}

const PING_MS = 10_000;
/** Consecutive failed pings after which a session is taken for dead; a server's restart takes less. */
const MAX_FAILED_PINGS = 25;
/** Setup may take long: prompt and calls wait for it. */
const SETUP_DEADLINE_MS = 1_800_000;

/** One open episode. Close it, or use `await using`: an abandoned one holds its slot until it expires. */
export class Session implements AsyncDisposable {
  readonly sid: string;
  readonly #connection: Connection;
  readonly #reserved: boolean;
  readonly #signal: AbortSignal | undefined;
  readonly #headers: Record<string, string>;
  readonly #prefix: string;
  #pings: NodeJS.Timeout | null = null;
  #failedPings = 0;
  #death: SessionTerminatedError | null = null;
  #closing: Promise<void> | null = null;

  private constructor(connection: Connection, sid: string, options: Omit<SessionOptions, 'environment'> & { environment?: string }) {
    this.sid = sid;
    this.#connection = connection;
    this.#reserved = options.reserve ?? true;
    this.#signal = options.signal;
    this.#headers = { 'x-session-id': sid, ...(options.environment && { 'x-deployment': options.environment }) };
    this.#prefix = options.variant ? `/${encodeURIComponent(options.variant)}` : '';
  }

  static async open(connection: Connection, options: SessionOptions): Promise<Session> {
    const secrets = encodeSecrets(options.secrets);
    const sid = (options.reserve ?? true) ? await reserveSid(connection, options, secrets) : newUuid();
    const session = new Session(connection, sid, options);
    try {
      await session.#create(options, secrets);
    } catch (error) {
      // A refused `/create` leaves its SID behind.
      await session.close();
      throw error;
    }
    session.#startPings(options.pingIntervalMs ?? PING_MS);
    return session;
  }

  /** A session that is open already. */
  static attach(connection: Connection, sid: string, options: AttachOptions): Session {
    const session = new Session(connection, sid, options);
    session.#startPings(options.pingIntervalMs ?? PING_MS);
    return session;
  }

  /** The task as the model reads it; waits for setup. */
  async prompt(): Promise<OutputBlock[]> {
    return (await this.#get('/prompt')) as OutputBlock[];
  }

  /** The prompt as a conversation, also from servers that know single prompts only. */
  async messages(): Promise<Message[]> {
    try {
      return (await this.#get('/messages')) as Message[];
    } catch (error) {
      if (!(error instanceof PalestraApiError) || error.status !== 404) throw error;
      return [{ role: 'user', blocks: await this.prompt(), detail: null }];
    }
  }

  /** Shared tools and those of this task, in the server's order. */
  async taskTools(): Promise<ToolsAnswer> {
    return (await this.#get('/task_tools')) as ToolsAnswer;
  }

  /**
   * Runs a tool once. A cut or stalled stream is resumed by its task id. Throws `ToolCallError` when the environment refuses
   * the call (the session goes on), `ToolFailedError` when the tool crashed (the session is closed).
   */
  async call(tool: string, input: JsonObject = {}): Promise<ToolOutput> {
    this.#assertAlive();
    try {
      const text = await this.#connection.stream(this.#post('/call', { name: tool, input }));
      const result = parseJson(text) as RunToolOutput;
      if (result.ok) return { ...result.output, reward: toPlainNumber(result.output.reward) };
      throw new ToolCallError(result.reason ?? guessReason(result.error), result.error);
    } catch (error) {
      if (error instanceof ToolFailedError) await this.#die(error.message);
      throw await this.#translate(error);
    }
  }

  /** Comparative rewards of several trajectories of this task, one per candidate. */
  async scoreGroup(candidates: GroupCandidate[]): Promise<GroupScore[]> {
    this.#assertAlive();
    try {
      const text = await this.#connection.stream(this.#post('/score_group', { candidates }));
      return (parseJson(text) as { scores: GroupScore[] }).scores;
    } catch (error) {
      throw await this.#translate(error);
    }
  }

  /** Ends the episode. Idempotent; failures are ignored: the server reaps what it does not hear of. */
  close(): Promise<void> {
    this.#closing ??= this.#close('closed by its client');
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** A repeat after a lost answer is told that the session exists: nobody else has its SID, so it is ours. */
  async #create(options: SessionOptions, secrets: Record<string, string>): Promise<void> {
    const body: JsonObject =
      options.taskSpec === undefined ? { split: options.split, index: options.index } : { task_spec: options.taskSpec };
    if (options.variant) body['env_name'] = options.variant;
    let answerLost = false;
    const attempt = async () => {
      try {
        await this.#connection.jsonOnce({ ...this.#post('/create', body, secrets), path: '/create', deadlineMs: SETUP_DEADLINE_MS });
      } catch (error) {
        if (answerLost && error instanceof PalestraApiError && error.detail === 'Session already exists') return;
        if (error instanceof ConnectionError) answerLost = true;
        throw error;
      }
    };
    await withRetry(attempt, requestRetry, options.signal);
  }

  async #get(path: string): Promise<JsonValue> {
    this.#assertAlive();
    try {
      return await this.#connection.json({
        path: this.#prefix + path,
        headers: this.#headers,
        signal: this.#signal,
        deadlineMs: SETUP_DEADLINE_MS,
      });
    } catch (error) {
      throw await this.#translate(error);
    }
  }

  #post(path: string, body?: JsonValue, headers: Record<string, string> = {}) {
    return { method: 'POST' as const, path: this.#prefix + path, headers: { ...this.#headers, ...headers }, body, signal: this.#signal };
  }

  #assertAlive(): void {
    if (this.#death) throw this.#death;
  }

  /** 410 on a session request is final. */
  async #translate(error: unknown): Promise<unknown> {
    if (error instanceof PalestraApiError && error.status === 410) {
      await this.#die(error.detail);
      return this.#death;
    }
    return error;
  }

  async #die(detail: string): Promise<void> {
    this.#death ??= new SessionTerminatedError(this.sid, detail);
    await this.close();
  }

  async #close(detail: string): Promise<void> {
    this.#death ??= new SessionTerminatedError(this.sid, detail);
    if (this.#pings) clearInterval(this.#pings);
    const headers = { 'x-session-id': this.sid };
    const paths = this.#reserved ? ['/delete', '/delete_session'] : ['/delete'];
    // Not under the caller's signal: an aborted caller must give its slot back too.
    for (const path of paths)
      await this.#connection.json({ method: 'POST', path, headers, deadlineMs: 10_000, retry: noRetry }).catch(() => {});
  }

  #startPings(intervalMs: number): void {
    if (intervalMs === 0) return;
    this.#pings = setInterval(() => void this.#ping(), intervalMs);
    this.#pings.unref();
  }

  async #ping(): Promise<void> {
    try {
      await this.#connection.jsonOnce({ method: 'POST', path: '/ping', headers: this.#headers, signal: this.#signal, deadlineMs: 30_000 });
      this.#failedPings = 0;
    } catch (error) {
      this.#failedPings += 1;
      if (this.#failedPings >= MAX_FAILED_PINGS)
        await this.#die(`${MAX_FAILED_PINGS} pings failed: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
}

async function reserveSid(connection: Connection, options: SessionOptions, secrets: Record<string, string>): Promise<string> {
  let sid = '';
  const call = {
    method: 'POST' as const,
    path: '/create_session',
    headers: { 'x-deployment': options.environment, ...secrets },
    body: {},
    signal: options.signal,
  };
  await connection.stream(call, (taskId) => {
    sid = taskId;
  });
  if (sid === '') throw new ConnectionError('/create_session: the stream gave no session id');
  return sid;
}

function encodeSecrets(secrets: SessionOptions['secrets']): Record<string, string> {
  if (!secrets || Object.keys(secrets).length === 0) return {};
  const map = Object.fromEntries(Object.entries(secrets).map(([key, value]) => [key, typeof value === 'string' ? { value } : value]));
  return { 'x-secrets': Buffer.from(JSON.stringify(map)).toString('base64') };
}

/** Servers before 0.1.156 send no reason (openreward-wire.md 2.3). */
function guessReason(error: string): string {
  if (error.startsWith('Tool input validation error')) return 'input_validation';
  if (error.startsWith('Tool name collision')) return 'name_collision';
  return 'not_found';
}
