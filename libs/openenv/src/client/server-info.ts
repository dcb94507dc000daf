import { SingleFlight } from '@palestra/kit';
import { isObject, type JsonObject, type JsonValue, parseJson } from '@palestra/protocol';
import type { OpenEnvShape } from '../wire/native.ts';
import { ConnectionFailed, type HttpAnswer, type OpenEnvConnection, TRANSIENT, unreachable, withDeadline } from './connection.ts';
import { SocketBroken, UpgradeRefused, UpstreamSocket } from './socket.ts';
import { notOpenEnv, readJson } from '../wire/server-replies.ts';

/** The current state of a server. */
export interface ServerInfo extends OpenEnvShape {
  /** Lower case; the first is the default. OpenEnv servers have only one. */
  environments: string[];
}

/** A server can change when it restarts, so this is read again after this time. */
const MAX_AGE_MS = 60_000;
/** Delay of the next attempt after a failed one. */
const MIN_AGE_MS = 5_000;
const DEADLINE_MS = 30_000;
/** An id that no server issues. */
const NO_SESSION = '00000000-0000-4000-8000-000000000000';
/** Titles of action schemas that tell clients to list tools (docs/reference/openenv.md#http-routes). */
const TOOL_ACTIONS: JsonValue[] = ['Action', 'CallToolAction', 'ListToolsAction'];

/** Generation A publishes no schema: any object is an action. */
function schemaOfGenerationA(): JsonObject {
  const object = (title: string) => ({ type: 'object', title, properties: {}, additionalProperties: true });
  return { action: object('EnvironmentAction'), observation: object('EnvironmentObservation'), state: object('EnvironmentState') };
}

/**
 * Reads the generation, mode and schemas of a server (docs/reference/openenv.md#servers-as-backends) at most once a minute. Metadata and
 * the test for attaching cost the server an environment, so they are read again only if the rest changed.
 */
export class ServerInfoReader {
  readonly #loading = new SingleFlight<ServerInfo>();
  #known: { info: ServerInfo; fingerprint: string; readAt: number } | null = null;

  constructor(readonly connection: OpenEnvConnection) {}

  async read(signal: AbortSignal): Promise<ServerInfo> {
    if (this.#known !== null && Date.now() - this.#known.readAt < MAX_AGE_MS) return this.#known.info;
    const reading = this.#loading.do('server', () => this.#current());
    let onAbort = () => {};
    const aborted = new Promise<never>((_resolve, reject) => {
      onAbort = () => reject(signal.reason as Error);
      if (signal.aborted) onAbort();
      signal.addEventListener('abort', onAbort, { once: true });
    });
    return Promise.race([reading, aborted]).finally(() => signal.removeEventListener('abort', onAbort));
  }

  /** Keeps the last result if the server does not answer. */
  async #current(): Promise<ServerInfo> {
    try {
      return await withDeadline(DEADLINE_MS, (signal) => this.#load(signal));
    } catch (error) {
      if (this.#known === null) throw error;
      this.#known.readAt = Date.now() - MAX_AGE_MS + MIN_AGE_MS;
      return this.#known.info;
    }
  }

  async #load(signal: AbortSignal): Promise<ServerInfo> {
    const [schema, openapi, list] = await Promise.all(
      ['/schema', '/openapi.json', '/list_environments'].map(async (path) => {
        const answer = await this.#get(path, signal);
        return answer.status === 200 ? answer.body.toString('utf8') : null;
      }),
    );
    const fingerprint = JSON.stringify([schema, openapi, list]);
    const info = this.#known?.fingerprint === fingerprint ? this.#known.info : await this.#readAll(schema!, openapi!, list!, signal);
    this.#known = { info, fingerprint, readAt: Date.now() };
    return info;
  }

  /** A proxy, or a server that starts, answers for a route that may exist: what the server has will be known later. */
  async #get(path: string, signal: AbortSignal): Promise<HttpAnswer> {
    const answer = await this.connection.get(path, signal);
    if (TRANSIENT.has(answer.status)) throw unreachable(new Error(`HTTP ${answer.status}`));
    return answer;
  }

  async #readAll(schema: string | null, openapi: string | null, list: string | null, signal: AbortSignal): Promise<ServerInfo> {
    const mode = await this.#mode(openapi, signal);
    if (schema === null && !('/mcp' in (pathsOf(openapi) ?? {}))) return this.#generationA(signal);
    // A server without classes publishes no schema; its actions call tools.
    const read =
      schema === null ? { action: { type: 'object', title: 'Action' }, observation: {}, state: {} } : readJson(schema, 'a schema');
    if (!isObject(read) || !isObject(read['action'])) throw notOpenEnv('publishes no schema of its actions');
    const generation = list === null ? 'C' : (await this.#attaches(signal)) ? 'E' : 'D';
    const metadata = await this.#metadata(signal);
    return {
      generation,
      mode,
      schema: read,
      metadata: metadata ?? { name: environmentsOf(list)?.[0] ?? 'default', description: '' },
      toolActions: TOOL_ACTIONS.includes(read['action']['title']),
      environments: environmentsOf(list) ?? [pathName(metadata?.['name'])],
    };
  }

  async #generationA(signal: AbortSignal): Promise<ServerInfo> {
    const health = await this.#get('/health', signal);
    if (health.status !== 200 || !health.body.toString('utf8').includes('healthy')) {
      throw notOpenEnv('at this URL has neither /schema nor /health: it does not speak OpenEnv');
    }
    return {
      generation: 'A',
      mode: 'simulation',
      schema: schemaOfGenerationA(),
      metadata: { name: 'default', description: '' },
      toolActions: false,
      environments: ['default'],
    };
  }

  /** Reads the mode from the OpenAPI document, otherwise from whether the route `/reset` exists. */
  async #mode(openapi: string | null, signal: AbortSignal): Promise<OpenEnvShape['mode']> {
    const paths = pathsOf(openapi);
    if (paths !== null) return '/reset' in paths ? 'simulation' : 'production';
    return (await this.#get('/reset', signal)).status === 404 ? 'production' : 'simulation';
  }

  /** null if the constructor fails; opening a session reports that error. */
  async #metadata(signal: AbortSignal): Promise<JsonObject | null> {
    const answer = await this.#get('/metadata', signal);
    if (answer.status !== 200) return null;
    const read = readJson(answer.body.toString('utf8'), 'metadata');
    return isObject(read) ? read : null;
  }

  /**
   * Whether the server honours `/ws?session_id=`: it then refuses an unknown id, even when it is full. An older server builds an
   * environment and answers, or refuses for another reason.
   */
  async #attaches(signal: AbortSignal): Promise<boolean> {
    const { socketUrl, headers, outbound } = this.connection;
    try {
      const socket = await UpstreamSocket.open({ url: `${socketUrl}?session_id=${NO_SESSION}`, headers, outbound }, signal);
      const refusal = await socket.fence(signal).finally(() => socket.close());
      return refusal !== null && refusal.includes(NO_SESSION);
    } catch (error) {
      if (error instanceof ConnectionFailed) throw unreachable(error);
      if (error instanceof UpgradeRefused) {
        throw TRANSIENT.has(error.status) ? unreachable(error) : notOpenEnv(`refuses sockets (HTTP ${error.status})`, error);
      }
      if (!(error instanceof SocketBroken)) throw error;
      // A full server closes at once. Any other break says nothing, and the answer is kept until the server changes.
      if (!error.closedAtOnce) throw unreachable(error);
      return false;
    }
  }
}

function parseOrNull(text: string): JsonValue {
  try {
    return parseJson(text);
  } catch {
    return null;
  }
}

function environmentsOf(list: string | null): string[] | null {
  const names = list === null ? null : parseOrNull(list);
  if (!Array.isArray(names)) return null;
  const found = names.filter((name): name is string => typeof name === 'string' && name !== '');
  return found.length === 0 ? null : found.map((name) => name.toLowerCase());
}

/** The name in a server's metadata, as a path segment. */
const pathName = (name: JsonValue): string =>
  (typeof name === 'string' ? name.toLowerCase().replaceAll(/[^\w.-]+/g, '_') : '') || 'default';

function pathsOf(openapi: string | null): JsonObject | null {
  const paths = openapi === null ? null : (parseOrNull(openapi) as { paths?: JsonValue } | null)?.paths;
  return isObject(paths) ? paths : null;
}
