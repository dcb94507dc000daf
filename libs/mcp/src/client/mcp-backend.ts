import { SingleFlight } from '@palestra/kit';
import { PalestraError, type Split, type TaskSpec, type ToolsAnswer } from '@palestra/protocol';
import { type Backend, type BackendCreate, type BackendSession, type BackendSessionRef, type EpisodeTask, taskOf } from '@palestra/session';
import type { Agent } from 'undici';
import { outboundAgent, type OutboundPolicy, unrestricted } from '@palestra/outbound';
import { McpConnection, type McpServer } from './mcp-connection.ts';
import { McpSession, type OpenEpisode } from './mcp-session.ts';

/** `allowCommands`: users may register programs, which this service starts. `outbound`: which addresses are allowed; default: all. */
export type McpBackendOptions = McpServer & { allowCommands?: boolean; outbound?: OutboundPolicy };

const SPLITS: Split[] = [{ name: 'train', type: 'train' }];
const VARIANT = 'mcp';
const CONNECT_TIMEOUT_MS = 10_000;
const TOOLS_MAX_AGE_MS = 60_000;

/**
 * The tools of an MCP server as an environment: streamable HTTP, the older HTTP with SSE, or a program on standard input and output. Each
 * episode has its own MCP session, and for a program its own process. MCP has no tasks; the environment has one, `{}`.
 */
export class McpBackend implements Backend {
  readonly #options: McpBackendOptions;
  readonly #agent: Agent;
  readonly #outbound: OutboundPolicy;
  readonly #open = new Map<string, OpenEpisode>();
  readonly #ending = new Set<Promise<void>>();
  readonly #asking = new SingleFlight<ToolsAnswer>();
  #tools: { answer: ToolsAnswer; readAt: number } | null = null;
  #closed = false;

  constructor(options: McpBackendOptions) {
    this.#options = options;
    this.#outbound = options.outbound ?? unrestricted;
    // No timeouts: a tool can run for hours with a silent stream.
    this.#agent = outboundAgent(this.#outbound, CONNECT_TIMEOUT_MS, { headersTimeout: 0, bodyTimeout: 0 });
  }

  async environments(): Promise<string[]> {
    return [VARIANT];
  }

  /** Opens a session to list the tools, at most once a minute. */
  async tools(_env: string | null, signal: AbortSignal): Promise<ToolsAnswer> {
    const known = this.#tools;
    if (known !== null && Date.now() - known.readAt < TOOLS_MAX_AGE_MS) return known.answer;
    return this.#asking.do('tools', async () => {
      const connection = await this.#connect({}, signal);
      try {
        const answer = { tools: await connection.tools(signal) };
        this.#tools = { answer, readAt: Date.now() };
        return answer;
      } finally {
        void this.#end(connection);
      }
    });
  }

  async splits(): Promise<Split[]> {
    return SPLITS;
  }
  async tasks(_env: string | null, split: string): Promise<TaskSpec[]> {
    assertSplit(split);
    return [{}];
  }
  async numTasks(_env: string | null, split: string): Promise<number> {
    assertSplit(split);
    return 1;
  }
  async task(_env: string | null, split: string, index: number): Promise<TaskSpec> {
    return specOf({ kind: 'index', split, index });
  }
  async taskRange(_env: string | null, split: string, start: number | null, stop: number | null): Promise<TaskSpec[]> {
    assertSplit(split);
    return [{} as TaskSpec].slice(start ?? 0, stop ?? 1);
  }

  async create(request: BackendCreate, signal: AbortSignal): Promise<BackendSessionRef> {
    const { sid, secrets, toolsetName, again } = request;
    if (toolsetName !== null) {
      throw new PalestraError('unknown_toolset', { detail: `unknown toolset '${toolsetName}'; an MCP server has no toolsets` });
    }
    const task = specOf(taskOf(request));
    if (again) await this.#endEpisode(sid);
    const connection = await this.#connect(secrets, signal);
    this.#open.set(sid, { connection, task });
    return { sid };
  }

  session(ref: BackendSessionRef): BackendSession {
    return new McpSession({ get: (sid) => this.#open.get(sid), end: (sid) => this.#endEpisode(sid) }, String(ref['sid']));
  }

  /** Ends every session and child process. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#open.keys()].map((sid) => this.#endEpisode(sid)));
    await Promise.all(this.#ending);
    await this.#agent.destroy();
  }

  async #connect(secrets: BackendCreate['secrets'], signal: AbortSignal): Promise<McpConnection> {
    if ('command' in this.#options && this.#options.allowCommands !== true) throw new PalestraError('commands_not_allowed');
    if (this.#closed) throw new PalestraError('backend_unreachable');
    // `fetch` refuses some ports by itself with another error, which would reveal something about a refused address.
    if ('url' in this.#options) {
      const { hostname, port, protocol } = new URL(this.#options.url);
      await this.#outbound.checkResolved(hostname, Number(port) || (protocol === 'https:' ? 443 : 80));
    }
    const connection = await McpConnection.open(this.#options, { agent: this.#agent, secrets }, signal);
    if (this.#closed) {
      await connection.close();
      throw new PalestraError('backend_unreachable');
    }
    return connection;
  }

  async #endEpisode(sid: string): Promise<void> {
    const episode = this.#open.get(sid);
    this.#open.delete(sid);
    if (episode !== undefined) await this.#end(episode.connection);
  }

  #end(connection: McpConnection): Promise<void> {
    const ending = connection.close().finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
    return ending;
  }
}

function assertSplit(split: string): void {
  if (split !== 'train') throw new PalestraError('invalid_split');
}

function specOf(task: EpisodeTask): TaskSpec {
  if (task.kind === 'spec') return task.spec;
  assertSplit(task.split);
  if (task.index !== 0 && task.index !== -1) throw new PalestraError('invalid_index');
  return {};
}
