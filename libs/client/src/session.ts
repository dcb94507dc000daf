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
import { closeRetry, mayHaveRun, requestRetry, withRetry } from './retry.ts';

export interface SessionOptions {
  /** `owner/name`, or a name in the caller's namespace. */
  environment: string;
  variant?: string;
  /** The task by split and index, */
  split?: string;
  index?: number;
  /** or by value. */
  taskSpec?: JsonValue;
  /** Values by name, optionally with the hosts that may receive them. */
  secrets?: Record<string, string | { value: string; allowed_domains?: string[] }>;
  signal?: AbortSignal;
  /**
   * True (default): `/create_session` reserves the session id and waits in the queue of a full environment. False: the client chooses
   * the id, which every ORS server accepts and which saves two requests.
   */
  reserve?: boolean;
  /** Interval of keep-alive pings; 0 sends none, for sessions of a few requests. */
  pingIntervalMs?: number;
  /** Called with the position in the queue of a full environment, whenever it changes. Not with `reserve: false`. */
  onQueue?: (position: QueuePosition) => void;
}

/** A place in the queue of an environment (docs/sessions.md#the-queue). */
export interface QueuePosition {
  /** 1 is the next one. */
  position: number;
  /** Number of waiting sessions. */
  waiting: number;
  /** Seconds; null while the service cannot estimate it. */
  estimated_wait_s: number | null;
}

export interface AttachOptions extends Pick<SessionOptions, 'signal' | 'pingIntervalMs'> {
  /** `owner/name`. Optional, because the server knows it. */
  environment?: string;
}

const PING_MS = 10_000;
/** Consecutive failed pings after which a session counts as lost; a restart of the server takes less time. */
const MAX_FAILED_PINGS = 25;
/** The prompt and calls wait for a slow setup. */
const SETUP_DEADLINE_MS = 1_800_000;

/** An open session. Close it or use `await using`: an abandoned session holds its slot until it expires. */
export class Session implements AsyncDisposable {
  readonly sid: string;
  readonly #connection: Connection;
  readonly #reserved: boolean;
  readonly #signal: AbortSignal | undefined;
  readonly #headers: Record<string, string>;
  readonly #prefix: string;
  #pings: ReturnType<typeof setInterval> | null = null;
  #failedPings = 0;
  #ended: { detail: string; code: string | null } | null = null;
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
      // The id stays reserved after a refused `/create`.
      await session.close();
      throw error;
    }
    session.#startPings(options.pingIntervalMs ?? PING_MS);
    return session;
  }

  /** Attaches to an open session. */
  static attach(connection: Connection, sid: string, options: AttachOptions): Session {
    const session = new Session(connection, sid, options);
    session.#startPings(options.pingIntervalMs ?? PING_MS);
    return session;
  }

  /** The prompt of the task. Waits for setup. */
  async prompt(): Promise<OutputBlock[]> {
    return (await this.#get('/prompt')) as OutputBlock[];
  }

  /** The prompt as a conversation, also from servers that only support single prompts. */
  async messages(): Promise<Message[]> {
    try {
      return (await this.#get('/messages')) as Message[];
    } catch (error) {
      if (!(error instanceof PalestraApiError) || error.status !== 404) throw error;
      return [{ role: 'user', blocks: await this.prompt(), detail: null }];
    }
  }

  /** The tools of the environment and of this task, in the server's order. */
  async taskTools(): Promise<ToolsAnswer> {
    return (await this.#get('/task_tools')) as ToolsAnswer;
  }

  /**
   * Runs a tool once. An interrupted or stalled stream is resumed with its task id; a repeat without it has the same `Idempotency-Key`.
   * Throws `ToolCallError` if the environment refuses the call (the session continues), and `ToolFailedError` if the tool raised an error
   * (the session is closed).
   */
  async call(tool: string, input: JsonObject = {}): Promise<ToolOutput> {
    this.#assertAlive();
    try {
      const request = this.#post('/call', { name: tool, input }, { 'idempotency-key': newUuid() });
      const text = await this.#connection.stream(request, {}, true);
      const result = parseJson(text) as RunToolOutput;
      if (result.ok) return { ...result.output, reward: toPlainNumber(result.output.reward) };
      throw new ToolCallError(result.reason ?? guessReason(result.error), result.error);
    } catch (error) {
      if (error instanceof ToolFailedError) await this.#terminate(error.message);
      throw await this.#translate(error);
    }
  }

  /** Compares several trajectories of this task and returns one score per candidate. */
  async scoreGroup(candidates: GroupCandidate[]): Promise<GroupScore[]> {
    this.#assertAlive();
    try {
      const text = await this.#connection.stream(this.#post('/score_group', { candidates }), {}, true);
      return (parseJson(text) as { scores: GroupScore[] }).scores;
    } catch (error) {
      throw await this.#translate(error);
    }
  }

  /** Ends the session. Idempotent. Failures are ignored, because the server ends idle sessions. */
  close(): Promise<void> {
    this.#closing ??= this.#close('closed by its client');
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** If the response is lost, the repeat fails with "already exists". That is success, because no other client has the id. */
  async #create(options: SessionOptions, secrets: Record<string, string>): Promise<void> {
    const body: JsonObject =
      options.taskSpec === undefined ? { split: options.split, index: options.index } : { task_spec: options.taskSpec };
    if (options.variant) body['env_name'] = options.variant;
    let responseLost = false;
    const attempt = async () => {
      try {
        await this.#connection.jsonOnce({ ...this.#post('/create', body, secrets), path: '/create', deadlineMs: SETUP_DEADLINE_MS });
      } catch (error) {
        if (responseLost && error instanceof PalestraApiError && error.detail === 'Session already exists') return;
        if (mayHaveRun(error)) responseLost = true;
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
    if (this.#ended) throw this.#endError();
  }

  #endError(): SessionTerminatedError {
    return new SessionTerminatedError(this.sid, this.#ended!.detail, this.#ended!.code);
  }

  /** A 410 on a session request is final: marks the session as ended. */
  async #translate(error: unknown): Promise<unknown> {
    if (error instanceof PalestraApiError && error.status === 410) {
      await this.#terminate(error.detail, error.code);
      return this.#endError();
    }
    return error;
  }

  async #terminate(detail: string, code: string | null = null): Promise<void> {
    this.#ended ??= { detail, code };
    await this.close();
  }

  async #close(detail: string): Promise<void> {
    this.#ended ??= { detail, code: null };
    if (this.#pings) clearInterval(this.#pings);
    const headers = { 'x-session-id': this.sid };
    const paths = this.#reserved ? ['/delete', '/delete_session'] : ['/delete'];
    // Without the caller's signal: an aborted caller must release its slot, too.
    for (const path of paths)
      await this.#connection.json({ method: 'POST', path, headers, deadlineMs: 10_000, retry: closeRetry }).catch(() => {});
  }

  #startPings(intervalMs: number): void {
    if (intervalMs === 0) return;
    this.#pings = setInterval(() => void this.#ping(), intervalMs);
    // In browsers a timer is a number.
    (this.#pings as { unref?: () => void }).unref?.();
  }

  async #ping(): Promise<void> {
    try {
      await this.#connection.jsonOnce({ method: 'POST', path: '/ping', headers: this.#headers, signal: this.#signal, deadlineMs: 30_000 });
      this.#failedPings = 0;
    } catch (error) {
      this.#failedPings += 1;
      if (this.#failedPings >= MAX_FAILED_PINGS)
        await this.#terminate(`${MAX_FAILED_PINGS} pings failed: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
}

async function reserveSid(connection: Connection, options: SessionOptions, secrets: Record<string, string>): Promise<string> {
  let sid = '';
  const call = {
    method: 'POST' as const,
    path: '/create_session',
    headers: { 'x-deployment': options.environment, 'x-palestra-queue': '1', ...secrets },
    body: {},
    signal: options.signal,
  };
  const { onQueue } = options;
  const listeners = {
    onTaskId: (taskId: string) => void (sid = taskId),
    ...(onQueue && { onQueue: (data: string) => queueMicrotask(() => onQueue(JSON.parse(data) as QueuePosition)) }),
  };
  await connection.stream(call, listeners, false);
  if (sid === '') throw new ConnectionError('/create_session: the stream contained no session id');
  return sid;
}

function encodeSecrets(secrets: SessionOptions['secrets']): Record<string, string> {
  if (!secrets || Object.keys(secrets).length === 0) return {};
  const map = Object.fromEntries(Object.entries(secrets).map(([key, value]) => [key, typeof value === 'string' ? { value } : value]));
  return { 'x-secrets': base64(JSON.stringify(map)) };
}

const base64 = (text: string): string => btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join(''));

/** Servers before openreward 0.1.156 send no `reason` (docs/reference/ors.md#older-servers). */
function guessReason(error: string): string {
  if (error.startsWith('Tool input validation error')) return 'input_validation';
  if (error.startsWith('Tool name collision')) return 'name_collision';
  return 'not_found';
}
