import { abortable, SingleFlight } from '@palestra/kit';
import {
  type JsonObject,
  type JsonValue,
  PalestraError,
  type Split,
  stringifyJson,
  type TaskSpec,
  toPlainNumber,
  type ToolsAnswer,
} from '@palestra/protocol';
import { type Backend, type BackendCreate, type BackendSession, type BackendSessionRef, taskOf } from '@palestra/session';
import { ANSWER_LIMITS } from '@palestra/outbound';
import { OrsConnection, type OrsConnectionOptions, STREAM_SILENCE } from './connection.ts';
import { OrsSession } from './ors-session.ts';
import { parseAnswer, readTools } from '../wire/server-answers.ts';
import { isMissingRoute, relayedError } from '../wire/server-errors.ts';
import { indexesOfRange } from '../wire/task-range.ts';

/** The server of `openreward`, or of `ors-sdk`. */
export type OrsServerKind = 'openreward' | 'ors-sdk';

interface Upstream {
  kind: OrsServerKind;
  /** Runs each call once by the id that we send: our environment kit. */
  takesCallIds: boolean;
  /** Names of environments; the first is the default. */
  environments: string[];
  readAt: number;
}

interface Opening {
  /** Aborts the request. */
  controller: AbortController;
}

/** How long we wait for an abandoned constructor, to delete its session. The server's idle limit ends later ones. */
const ABANDONED_CREATE_MS = 120_000;
const DELETE_MS = 10_000;

/** A server can change when it restarts, so this is read again after this time. */
const UPSTREAM_MAX_AGE_MS = 60_000;
/** Minimum time between two reads, for unknown names. */
const UPSTREAM_MIN_AGE_MS = 2_000;

/** Servers answer this at once, unless their tools block them. */
const UPSTREAM_DEADLINE_MS = 30_000;

/** Python's `repr` of a name, as in the errors of servers. */
const quoted = (name: string): string => (name.includes("'") && !name.includes('"') ? `"${name}"` : `'${name.replaceAll("'", "\\'")}'`);

/**
 * Client of an ORS server: any version of the server of `openreward`, and that of `ors-sdk`. Adds what older servers lack
 * (docs/reference/ors.md#older-servers).
 */
export class OrsBackend implements Backend {
  readonly #connection: OrsConnection;
  readonly #loading = new SingleFlight<Upstream>();
  #upstream: Upstream | null = null;
  /** The newest pending create of each SID. */
  readonly #opening = new Map<string, Opening>();

  constructor(options: OrsConnectionOptions) {
    this.#connection = new OrsConnection(options);
  }

  async environments(signal: AbortSignal): Promise<string[]> {
    return (await this.#current(UPSTREAM_MAX_AGE_MS, signal)).environments;
  }

  async kind(signal: AbortSignal): Promise<OrsServerKind> {
    return (await this.#current(UPSTREAM_MAX_AGE_MS, signal)).kind;
  }

  async tools(env: string | null, signal: AbortSignal): Promise<ToolsAnswer> {
    return readTools(await this.#discover(env, 'tools', undefined, signal));
  }

  async splits(env: string | null, signal: AbortSignal): Promise<Split[]> {
    return parseAnswer(await this.#discover(env, 'splits', undefined, signal), 'a split list') as Split[];
  }

  async tasks(env: string | null, split: string, signal: AbortSignal): Promise<TaskSpec[]> {
    return this.#taskList(env, 'tasks', { split }, signal);
  }

  async numTasks(env: string | null, split: string, signal: AbortSignal): Promise<number> {
    try {
      const answer = parseAnswer(await this.#discover(env, 'num_tasks', { split }, signal), 'a task count') as JsonObject;
      return toPlainNumber(answer['num_tasks']) ?? 0;
    } catch (error) {
      if (!isMissingRoute(error)) throw error;
      return (await this.#taskList(env, 'tasks', { split }, signal)).length;
    }
  }

  async task(env: string | null, split: string, index: number, signal: AbortSignal): Promise<TaskSpec> {
    try {
      const answer = parseAnswer(await this.#discover(env, 'task', { split, index }, signal), 'a task') as JsonObject;
      return answer['task'];
    } catch (error) {
      if (!isMissingRoute(error)) throw error;
      const tasks = await this.#taskList(env, 'tasks', { split }, signal);
      const position = index < 0 ? tasks.length + index : index;
      if (!(position in tasks)) throw new PalestraError('invalid_index');
      return tasks[position];
    }
  }

  async taskRange(env: string | null, split: string, start: number | null, stop: number | null, signal: AbortSignal): Promise<TaskSpec[]> {
    try {
      return await this.#taskList(env, 'task_range', { split, start, stop }, signal);
    } catch (error) {
      if (!isMissingRoute(error)) throw error;
      const tasks = await this.#taskList(env, 'tasks', { split }, signal);
      return indexesOfRange(tasks.length, start, stop).map((index) => tasks[index]);
    }
  }

  async create(request: BackendCreate, signal: AbortSignal): Promise<BackendSessionRef> {
    const [env, kind] = [await this.#environment(request.env, signal), await this.kind(signal)];
    if (kind === 'ors-sdk' && request.toolsetName !== null) {
      throw new PalestraError('unknown_toolset', {
        detail: `unknown toolset ${quoted(request.toolsetName)}; this environment server has no toolsets`,
      });
    }
    const { body, headers } = createMessage(request, env, kind);
    const session = new OrsSession(this.#connection, request.sid, env, false);
    const create = { method: 'POST', path: '/create', sid: request.sid, body, headers } as const;
    if (request.again) await session.delete(signal);
    const opening: Opening = { controller: new AbortController() };
    this.#opening.set(request.sid, opening);
    // Runs to its end, also after the caller left.
    const creation = this.#connection.answer(create, 'once', opening.controller.signal);
    let answer;
    try {
      answer = await abortable(creation, signal);
    } catch (error) {
      void this.#deleteAbandoned(request.sid, session, opening, creation);
      throw error;
    }
    this.#removeOpening(request.sid, opening);
    if (answer.status !== 200) {
      const error = relayedError(answer);
      // An earlier attempt of ours opened it; its response was lost.
      if (error.code === 'session_exists' && !request.again) return this.create({ ...request, again: true }, signal);
      throw error;
    }
    const { takesCallIds } = await this.#current(UPSTREAM_MAX_AGE_MS, signal);
    return takesCallIds ? { sid: request.sid, env, takesCallIds } : { sid: request.sid, env };
  }

  /**
   * Deletes the session of an abandoned create. The delete can overtake the create, so it is sent again after the create ended, unless the
   * SID has been opened again meanwhile.
   */
  async #deleteAbandoned(sid: string, session: BackendSession, opening: Opening, creation: Promise<unknown>): Promise<void> {
    const timer = setTimeout(() => opening.controller.abort(new PalestraError('backend_timeout')), ABANDONED_CREATE_MS);
    await session.delete(AbortSignal.timeout(DELETE_MS)).catch(() => {});
    await creation.catch(() => {});
    clearTimeout(timer);
    if (this.#removeOpening(sid, opening)) await session.delete(AbortSignal.timeout(DELETE_MS)).catch(() => {});
  }

  /** Returns whether it was the newest of its SID. */
  #removeOpening(sid: string, opening: Opening): boolean {
    return this.#opening.get(sid) === opening && this.#opening.delete(sid);
  }

  session(ref: BackendSessionRef): BackendSession {
    return new OrsSession(this.#connection, String(ref['sid']), String(ref['env']), ref['takesCallIds'] === true);
  }

  async close(): Promise<void> {
    await this.#connection.close();
  }

  async #taskList(env: string | null, route: string, body: JsonObject, signal: AbortSignal): Promise<JsonValue[]> {
    const answer = parseAnswer(await this.#discover(env, route, body, signal, ANSWER_LIMITS.call), 'a task list') as JsonObject;
    if (!Array.isArray(answer['tasks']))
      throw new PalestraError('backend_invalid', { detail: 'The environment server sent no task list.' });
    return answer['tasks'];
  }

  async #discover(
    env: string | null,
    route: string,
    body: JsonObject | undefined,
    signal: AbortSignal,
    limitBytes: number = ANSWER_LIMITS.metadata,
  ): Promise<string> {
    const name = await this.#environment(env, signal);
    const request = { path: `/${encodeURIComponent(name)}/${route}`, limitBytes };
    return body === undefined
      ? this.#connection.text({ method: 'GET', ...request }, 'idempotent', signal)
      : this.#connection.text({ method: 'POST', body: stringifyJson(body), ...request }, 'idempotent', signal);
  }

  /** The name in the server's spelling. */
  async #environment(env: string | null, signal: AbortSignal): Promise<string> {
    const find = ({ environments }: Upstream) => (env === null ? environments[0] : environments.find((name) => name === env.toLowerCase()));
    const known = find(await this.#current(UPSTREAM_MAX_AGE_MS, signal)) ?? find(await this.#current(UPSTREAM_MIN_AGE_MS, signal));
    if (known === undefined) throw new PalestraError('unknown_variant', { detail: `unknown environment ${quoted(env ?? '')}` });
    return known;
  }

  async #current(maxAgeMs: number, signal: AbortSignal): Promise<Upstream> {
    if (this.#upstream !== null && Date.now() - this.#upstream.readAt < maxAgeMs) return this.#upstream;
    // Shared by all callers, so it has its own deadline.
    const reading = this.#loading.do('upstream', () => this.#readWithDeadline());
    return abortable(reading, signal);
  }

  async #readWithDeadline(): Promise<Upstream> {
    const deadline = AbortSignal.timeout(Math.max(UPSTREAM_DEADLINE_MS, STREAM_SILENCE * this.#connection.silenceMs));
    try {
      return await this.#read(deadline);
    } catch (error) {
      if (!deadline.aborted || error instanceof PalestraError) throw error;
      throw new PalestraError('backend_timeout', { retryAfterSeconds: 2, cause: error });
    }
  }

  async #read(signal: AbortSignal): Promise<Upstream> {
    const list = parseAnswer(
      await this.#connection.text({ method: 'GET', path: '/list_environments' }, 'idempotent', signal),
      'an environment list',
    );
    if (!Array.isArray(list) || list.length === 0 || !list.every((name) => typeof name === 'string')) {
      throw new PalestraError('backend_invalid', {
        detail: 'The server at this URL lists no environments: it does not speak the Open Reward Standard.',
      });
    }
    // ors-sdk redirects to `/{env}/version`, which does not exist.
    const version = await this.#connection.answer({ method: 'GET', path: '/version' }, 'idempotent', signal);
    // A proxy, or a server that starts: what it is will be known later.
    if (version.status === 429 || version.status >= 500) throw relayedError(version);
    this.#upstream = {
      kind: version.status === 200 ? 'openreward' : 'ors-sdk',
      takesCallIds: version.status === 200 && version.text.includes('+palestra.'),
      environments: list.map((name) => name.toLowerCase()),
      readAt: Date.now(),
    };
    return this.#upstream;
  }
}

/** Both servers refuse unknown keys. One reads secrets from a header, the other from the body. */
function createMessage(request: BackendCreate, env: string, kind: OrsServerKind): { body: string; headers: Record<string, string> } {
  const { secrets, toolsetName } = request;
  const task = taskOf(request);
  const body: JsonObject = task.kind === 'spec' ? { task_spec: task.spec } : { split: task.split, index: task.index };
  body['env_name'] = env;
  const names = Object.keys(secrets);
  if (kind === 'ors-sdk') {
    if (names.length > 0) body['secrets'] = Object.fromEntries(names.map((name) => [name, secrets[name]!.value]));
    return { body: stringifyJson(body), headers: {} };
  }
  if (toolsetName !== null) body['toolset_name'] = toolsetName;
  const headers = names.length > 0 ? { 'x-secrets': Buffer.from(JSON.stringify(secrets)).toString('base64') } : {};
  return { body: stringifyJson(body), headers: headers as Record<string, string> };
}
