import { newUuid } from '@palestra/kit';
import {
  isObject,
  type JsonObject,
  type MessageBlock,
  PalestraError,
  type Split,
  type TaskSpec,
  type ToolsAnswer,
} from '@palestra/protocol';
import type { Backend, BackendCreate, BackendSession, BackendSessionRef } from '@palestra/session';
import type { OutboundPolicy } from '@palestra/outbound';
import { OPENENV, type OpenEnvUpstream } from '../wire/native.ts';
import { HttpTransport, SocketTransport } from './transports.ts';
import { ConnectionFailed, OpenEnvConnection, withDeadline } from './connection.ts';
import { KeepAlive } from './keep-alive.ts';
import { LostSession } from './lost-session.ts';
import { frameOf } from './message.ts';
import { type Transport, OpenEnvEpisode } from './openenv-session.ts';
import { promptOfReset } from './tool-results.ts';
import { type ServerInfo, ServerInfoReader } from './server-info.ts';
import { closeUpstreamSession, createUpstreamSession, openSocket, UnknownSession } from './open-socket.ts';
import { TaskApi } from './task-api.ts';
import { serverWithTasks } from './uploaded-tasks.ts';
import { sessionTools, stepTool, toolsOfRpc } from './list-tools.ts';
import { notOpenEnv } from '../wire/server-replies.ts';

export interface OpenEnvBackendOptions {
  /** Base URL of the server. Its path is a prefix; it can contain a key as user information. */
  url: string;
  deployment?: string;
  /** Which addresses are allowed; default: all. */
  outbound?: OutboundPolicy;
}

/** Stored with a session: enough to close it or to attach to it again after this process died. */
interface Ref extends JsonObject {
  /** Distinguishes episodes with the same SID. */
  key: string;
  /** The server's id of a session that survives its socket. */
  upstream: string | null;
  toolActions: boolean;
  prompt?: MessageBlock[];
}

/** Characters of JSON. Longer prompts are not stored with the session. */
const STORED_PROMPT = 16_384;

/**
 * Client of an OpenEnv server of any generation (docs/reference/openenv.md#servers-as-backends). Each session has one socket, attached to a
 * session of the server if it can (from 0.5), or uses the stateful HTTP routes of the first servers. `native` passes messages of OpenEnv
 * clients through.
 */
export class OpenEnvBackend implements Backend {
  readonly native: OpenEnvUpstream;
  readonly #connection: OpenEnvConnection;
  readonly #keepAlive = new KeepAlive();
  readonly #shape: ServerInfoReader;
  readonly #episodes = new Map<string, OpenEnvEpisode>();
  /** Closings that free slots of the server. */
  readonly #closing = new Set<Promise<void>>();
  readonly #keyBySid = new Map<string, string>();
  #tools: { of: ServerInfo; answer: Promise<ToolsAnswer> } | null = null;
  #taskApi: { of: ServerInfo; api: TaskApi } | null = null;
  /** A server with several processes, where a socket rarely reaches the process of its session. It gets plain sockets. */
  #multiProcess: ServerInfo | null = null;
  /** Key of the one episode of a generation A server. */
  #generationAKey: string | null = null;

  constructor(options: OpenEnvBackendOptions) {
    this.#connection = new OpenEnvConnection(options.url, options.outbound);
    this.#shape = new ServerInfoReader(this.#connection);
    this.native = {
      protocol: OPENENV,
      withTasks: (tasks) => serverWithTasks(this.native, tasks),
      shape: (signal) => this.#shape.read(signal),
      relay: (request, signal) =>
        this.#connection.request(request, request.method === 'GET' ? 'idempotent' : 'never', signal).catch((error: unknown) => {
          // The request may have run, so the error must not say that it did not.
          throw error instanceof ConnectionFailed ? notOpenEnv(`broke the connection before its answer (${error.message})`, error) : error;
        }),
    };
  }

  async environments(signal: AbortSignal): Promise<string[]> {
    return (await this.#shape.read(signal)).environments;
  }

  async tools(env: string | null, signal: AbortSignal): Promise<ToolsAnswer> {
    const server = await this.#serverFor(env, signal);
    if (!server.toolActions) return stepTool(server);
    if (this.#tools?.of !== server) {
      const answer = withDeadline(60_000, (deadline) => this.#listTools(deadline));
      this.#tools = { of: server, answer };
      answer.catch(() => (this.#tools = null));
    }
    return this.#tools.answer;
  }

  async splits(env: string | null, signal: AbortSignal): Promise<Split[]> {
    return (await this.#taskApiFor(env, signal)).splits();
  }

  async tasks(env: string | null, split: string, signal: AbortSignal): Promise<TaskSpec[]> {
    return (await this.#taskApiFor(env, signal)).tasks(split, signal);
  }

  async numTasks(env: string | null, split: string, signal: AbortSignal): Promise<number> {
    return (await this.#taskApiFor(env, signal)).count(split);
  }

  async task(env: string | null, split: string, index: number, signal: AbortSignal): Promise<TaskSpec> {
    return (await this.#taskApiFor(env, signal)).task(split, index, signal);
  }

  async taskRange(env: string | null, split: string, start: number | null, stop: number | null, signal: AbortSignal): Promise<TaskSpec[]> {
    return (await this.#taskApiFor(env, signal)).range(split, start, stop, signal);
  }

  async create(request: BackendCreate, signal: AbortSignal): Promise<BackendSessionRef> {
    if (request.toolsetName !== null) {
      throw new PalestraError('unknown_toolset', { detail: `unknown toolset '${request.toolsetName}'; an OpenEnv server has no toolsets` });
    }
    const server = await this.#serverFor(request.env, signal);
    const before = this.#keyBySid.get(request.sid);
    if (before !== undefined) await this.#episodes.get(before)?.delete();
    const ref: Ref = { key: newUuid(), upstream: null, toolActions: server.toolActions };
    // An environment that cannot be built has no tasks either, but only opening a session tells why.
    const isBuildFailure = (error: unknown) => error instanceof PalestraError && error.code === 'environment_failed';
    const keywords = await this.#resetKeywords(request, signal).catch((error: unknown) =>
      isBuildFailure(error) ? (error as Error) : Promise.reject(error),
    );
    const episode = this.#register(ref, request.sid, await this.#open(ref, server, signal), null);
    if (keywords === null) return ref;
    try {
      if (keywords instanceof Error) throw keywords;
      const prompt = await episode.reset(keywords, (data, images) => promptOfReset(data, server.toolActions, images), signal);
      const stored = ref.upstream !== null && JSON.stringify(prompt).length <= STORED_PROMPT;
      return stored ? { ...ref, prompt } : ref;
    } catch (error) {
      await episode.delete().catch(() => {});
      throw error;
    }
  }

  session(ref: BackendSessionRef): BackendSession {
    const { key, upstream, toolActions, prompt } = ref as Ref;
    const known = this.#episodes.get(key);
    if (known !== undefined) return known;
    if (upstream === null) return new LostSession();
    const transport = new SocketTransport(this.#connection, this.#keepAlive, upstream, null);
    return this.#register({ key, upstream, toolActions }, null, transport, prompt ?? null);
  }

  /** Ends every episode, because nothing could continue it or free its slot later. */
  async close(): Promise<void> {
    for (const episode of this.#episodes.values()) episode.delete().catch(() => {});
    await Promise.allSettled(this.#closing);
    this.#keepAlive.stop();
    await this.#connection.close();
  }

  async #serverFor(env: string | null, signal: AbortSignal): Promise<ServerInfo> {
    const server = await this.#shape.read(signal);
    if (env !== null && !server.environments.includes(env.toLowerCase())) {
      throw new PalestraError('unknown_variant', { detail: `unknown environment '${env}'` });
    }
    return server;
  }

  async #taskApiFor(env: string | null, signal: AbortSignal): Promise<TaskApi> {
    const server = await this.#serverFor(env, signal);
    if (this.#taskApi?.of !== server) {
      const published = server.generation === 'D' || server.generation === 'E';
      this.#taskApi = { of: server, api: new TaskApi(this.#connection, published ? server.environments[0]! : null) };
    }
    return this.#taskApi.api;
  }

  /** Uses JSON-RPC, which costs no slot; otherwise opens a session. */
  async #listTools(signal: AbortSignal): Promise<ToolsAnswer> {
    const listed = toolsOfRpc(await this.#connection.rpc('tools/list', {}, 'idempotent', signal));
    if (listed !== null) return listed;
    const transport = new SocketTransport(
      this.#connection,
      this.#keepAlive,
      null,
      await openSocket(this.#connection, this.#keepAlive, null, signal),
    );
    return sessionTools((message) => transport.send(message, frameOf(message), signal)).finally(() => transport.close());
  }

  /** The keywords of `reset` for the task; null if the client resets by itself. */
  async #resetKeywords({ env, task }: BackendCreate, signal: AbortSignal): Promise<JsonObject | null> {
    if (task.kind === 'none') return null;
    const tasks = await this.#taskApiFor(env, signal);
    if (task.kind === 'index') {
      const index = await tasks.position(task.split, task.index);
      return (await tasks.hasTasks()) ? { split: task.split, index } : {};
    }
    const { spec } = task;
    if (isObject(spec) && 'split' in spec && 'index' in spec) return spec;
    const position = (await tasks.hasTasks()) ? await tasks.positionOf(spec) : null;
    if (position !== null) return position;
    if (isObject(spec)) return spec;
    throw new PalestraError('invalid_request', { detail: 'A task of this environment is an object: the keywords of its reset.' });
  }

  async #open(ref: Ref, server: ServerInfo, signal: AbortSignal): Promise<Transport> {
    if (server.generation === 'A') {
      if (this.#generationAKey !== null) {
        const detail = 'This environment server plays one episode at a time, and is playing one.';
        throw new PalestraError('capacity_exhausted', { detail, retryAfterSeconds: 1 });
      }
      this.#generationAKey = ref.key;
      return new HttpTransport(this.#connection, () => {
        if (this.#generationAKey === ref.key) this.#generationAKey = null;
      });
    }
    if (server.generation === 'E' && this.#multiProcess !== server) {
      ref.upstream = await createUpstreamSession(this.#connection, signal);
      try {
        const socket = await openSocket(this.#connection, this.#keepAlive, ref.upstream, signal);
        return new SocketTransport(this.#connection, this.#keepAlive, ref.upstream, socket);
      } catch (error) {
        this.#release(closeUpstreamSession(this.#connection, ref.upstream));
        ref.upstream = null;
        if (!(error instanceof UnknownSession)) throw error;
        this.#multiProcess = server;
      }
    }
    const socket = await openSocket(this.#connection, this.#keepAlive, null, signal);
    return new SocketTransport(this.#connection, this.#keepAlive, null, socket);
  }

  /** Only `close` waits for it. */
  #release(closing: Promise<void>): void {
    this.#closing.add(closing);
    const closed = () => void this.#closing.delete(closing);
    closing.then(closed, closed);
  }

  #register({ key, toolActions }: Ref, sid: string | null, transport: Transport, prompt: MessageBlock[] | null): OpenEnvEpisode {
    const onEnd = (closing: Promise<void>) => {
      this.#episodes.delete(key);
      this.#release(closing);
      if (sid !== null && this.#keyBySid.get(sid) === key) this.#keyBySid.delete(sid);
    };
    const options = { transport, toolActions, stepTool: async (signal: AbortSignal) => stepTool(await this.#shape.read(signal)), onEnd };
    const episode = new OpenEnvEpisode(options, prompt);
    this.#episodes.set(key, episode);
    if (sid !== null) this.#keyBySid.set(sid, key);
    return episode;
  }
}
