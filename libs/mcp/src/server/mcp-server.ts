import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import {
  CallToolRequestSchema,
  GetPromptRequestSchema,
  type Implementation,
  InitializeRequestSchema,
  LATEST_PROTOCOL_VERSION,
  ListPromptsRequestSchema,
  ListToolsRequestSchema,
  type ServerCapabilities,
  SUPPORTED_PROTOCOL_VERSIONS,
} from '@modelcontextprotocol/sdk/types.js';
import type { jsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/types.js';
import { type JsonObject, PalestraError } from '@palestra/protocol';
import {
  type Caller,
  type EnvironmentDirectory,
  type HostedEnvironment,
  type Recording,
  type SessionEngine,
  decodeSecrets,
} from '@palestra/session';
import { type CallCursor, freshCursor } from './call-events.ts';
import { type McpCall, McpCalls } from './running-calls.ts';
import { instructionsOf, promptMessages, toolOf } from '../wire/to-mcp.ts';
import { reportProgress } from './progress.ts';
import { asRpcError, RpcError } from './rpc-error.ts';
import { chooseTask, type TaskChoice, type TaskRequest } from './task-choice.ts';

/** Parameters of an `initialize`. */
export interface McpOpening {
  caller: Caller;
  owner: string;
  name: string;
  /** null: the default variant. */
  variant: string | null;
  request: TaskRequest;
}

/** The chosen environment and task. */
export interface McpEpisode {
  caller: Caller;
  /** Becomes the `Mcp-Session-Id`. */
  sid: string;
  hosted: HostedEnvironment;
  variant: string | null;
  task: TaskChoice;
}

/** The result of `initialize` without the negotiated version. */
export interface McpGreeting {
  capabilities: ServerCapabilities;
  serverInfo: Implementation;
  /** Text of the prompt. */
  instructions: string;
  _meta: Record<string, unknown>;
}

/** Validates input of clients, which we never request. The SDK's own takes 2 ms per server, and each request has its own server. */
const unused: jsonSchemaValidator = {
  getValidator: () => () => {
    throw new PalestraError('not_available');
  },
};
const DISCOVERY_DEADLINE_MS = 120_000;
const PROMPT = { name: 'task', title: 'Task', description: 'The task of this episode, as its environment words it.' };

/**
 * Serves MCP over the session engine (docs/mcp.md): an MCP session is an episode and its id is the SID. Each request has its own SDK
 * `Server`, so that any API process can serve any session. Only listeners of running calls are kept between requests.
 */
export class McpServer {
  readonly calls: McpCalls;

  constructor(
    readonly engine: SessionEngine,
    readonly directory: EnvironmentDirectory,
    readonly version: string,
    /** Interval of progress reports. */
    readonly beatMs: number,
  ) {
    this.calls = new McpCalls(engine);
  }

  /** Chooses the environment and task. Throws `environment_not_found`, `unknown_variant`, `invalid_split`, `invalid_index`. */
  async choose({ caller, owner, name, variant, request }: McpOpening): Promise<Omit<McpEpisode, 'sid'>> {
    const hosted = await this.directory.resolve(`${owner}/${name}`, caller);
    // The fallback deployment is only for clients that cannot name one.
    if (!isSame(hosted, owner, name.replace(/@\d+$/, ''))) throw new PalestraError('environment_not_found');
    const signal = AbortSignal.timeout(DISCOVERY_DEADLINE_MS);
    const variantName = variant?.toLowerCase() ?? null;
    if (variantName !== null && !(await hosted.backend.environments(signal)).includes(variantName)) {
      throw new PalestraError('unknown_variant', { detail: `unknown environment '${variant}'` });
    }
    return { caller, hosted, variant: variantName, task: await chooseTask(hosted.backend, variantName, request, signal) };
  }

  /**
   * Opens the episode: waits for a slot and for setup. Deletes the session if that fails or `signal` aborts because the client left. Throws
   * `session_moved` if the slot is on another process.
   */
  async open(
    { caller, sid, hosted, variant, task }: McpEpisode,
    options: { secrets: string | null; recording: Recording | null },
    signal: AbortSignal,
  ): Promise<McpGreeting> {
    const { engine } = this;
    const sessionOptions = { secrets: decodeSecrets(options.secrets), recording: options.recording };
    await engine.reserve(caller, { sid, hosted, ...sessionOptions });
    try {
      await engine.create(caller, {
        sid,
        resolve: async () => hosted,
        variant: async () => variant,
        task: { kind: 'index', ...task },
        toolsetName: null,
        ...sessionOptions,
        signal,
      });
      const prompt = await engine.prompt(caller, sid);
      signal.throwIfAborted();
      return {
        capabilities: { tools: {}, prompts: {} },
        serverInfo: { name: `${hosted.owner}/${hosted.name}`, version: this.version },
        instructions: instructionsOf(prompt),
        _meta: {
          'palestra/session_id': sid,
          'palestra/environment': `${hosted.owner}/${hosted.name}`,
          'palestra/split': task.split,
          'palestra/index': task.index,
        },
      };
    } catch (error) {
      const code = error instanceof PalestraError ? error.code : null;
      if (code !== 'session_moved' && code !== 'session_exists') await engine.delete(caller, sid);
      throw error;
    }
  }

  /**
   * Throws 404 if the session has ended or belongs to another environment. Counts as a request of the client, which resets the idle
   * timeout, unless `onlyPing`.
   */
  async alive(caller: Caller, sid: string, address: { owner: string; name: string }, onlyPing: boolean): Promise<void> {
    const { engine } = this;
    await engine.ping(caller, sid).catch((error: unknown) => Promise.reject(endOf(error)));
    if (onlyPing) return;
    const hosted = await engine.environmentOf(caller, sid);
    if (hosted === null || !isSame(hosted, address.owner, address.name.replace(/@\d+$/, ''))) throw new PalestraError('session_not_found');
  }

  /** A server that answers one `initialize` with the result of `open`. */
  greeting(opened: McpGreeting): Server {
    const server = new Server(opened.serverInfo, { capabilities: opened.capabilities, jsonSchemaValidator: unused });
    server.setRequestHandler(InitializeRequestSchema, ({ params: { protocolVersion: requested } }) => ({
      protocolVersion: SUPPORTED_PROTOCOL_VERSIONS.includes(requested) ? requested : LATEST_PROTOCOL_VERSION,
      ...opened,
    }));
    return server;
  }

  /** A server for requests of a session. `begun`: the running call of this request and the position of its stream. */
  server(caller: Caller, sid: string, begun: { call: Promise<McpCall>; cursor: CallCursor } | null = null): Server {
    const { engine } = this;
    const about = { name: 'palestra', version: this.version };
    const server = new Server(about, { capabilities: { tools: {}, prompts: {} }, jsonSchemaValidator: unused });
    server.setRequestHandler(ListToolsRequestSchema, () =>
      withRpcErrors(async () => ({ tools: (await engine.taskTools(caller, sid)).tools.map(toolOf) })),
    );
    server.setRequestHandler(CallToolRequestSchema, ({ params }, { requestId, sendNotification }) =>
      withRpcErrors(async () => {
        const { name: tool, arguments: input = {} } = params;
        const callRequest = { requestId, tool, input: input as JsonObject };
        const call = await (begun === null ? this.calls.begin(caller, sid, callRequest) : begun.call);
        const cursor = begun?.cursor ?? freshCursor(call.open.taskId, requestId, params._meta?.progressToken);
        const silence = reportProgress(call.progress, cursor, this.beatMs, sendNotification);
        return call.result().finally(silence);
      }),
    );
    server.setRequestHandler(ListPromptsRequestSchema, () => ({ prompts: [PROMPT] }));
    server.setRequestHandler(GetPromptRequestSchema, ({ params: { name } }) =>
      withRpcErrors(async () => {
        if (name !== PROMPT.name) throw new RpcError(-32_602, `Unknown prompt: ${name}. This server has one, "${PROMPT.name}".`);
        return { description: PROMPT.description, messages: promptMessages(await engine.prompt(caller, sid)) };
      }),
    );
    return server;
  }
}

/** An ended session is 404, so that clients initialize again. */
function endOf(error: unknown): unknown {
  if (!(error instanceof PalestraError) || error.retryable) return error;
  return new PalestraError(error.code, { status: 404, detail: error.detail });
}

async function withRpcErrors<T>(answer: () => Promise<T>): Promise<T> {
  try {
    return await answer();
  } catch (error) {
    throw asRpcError(error);
  }
}

const isSame = (hosted: HostedEnvironment, owner: string, name: string): boolean =>
  hosted.owner.toLowerCase() === owner.toLowerCase() && hosted.name.toLowerCase() === name.toLowerCase();
