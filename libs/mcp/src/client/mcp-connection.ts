import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport, SseError } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { RequestOptions } from '@modelcontextprotocol/sdk/shared/protocol.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { type JSONRPCMessage, ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import type { JsonSchemaValidator, jsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/types.js';
import { splitCredentials } from '@palestra/kit';
import { PalestraError, type ToolSpec } from '@palestra/protocol';
import { VERSION } from '@palestra/protocol/version';
import type { SecretMap } from '@palestra/session';
import type { Agent } from 'undici';
import { ANSWER_LIMITS, answerTooLarge } from '@palestra/outbound';
import { RESPONSE_INTERRUPTED, lost, openingError, requestError, statusOf } from './mcp-errors.ts';
import { StdioTransport } from './stdio-transport.ts';
import { toolSpecOf } from '../wire/from-mcp.ts';
import { observedFetch } from './observed-fetch.ts';

export type McpServer = { url: string } | { command: string; args: string[] };

/** The callers have deadlines; the SDK's default is a minute. */
const NO_TIMEOUT = 2 ** 31 - 1;
/** Output schemas of servers are not compiled in this process. */
const unchecked: jsonSchemaValidator = {
  getValidator<T>(): JsonSchemaValidator<T> {
    return (input) => ({ valid: true, data: input as T, errorMessage: undefined });
  },
};
const TERMINATE_MS = 5_000;
const MAX_PAGES = 100;

/** One MCP session: an initialised client, its transport, and the reason why it ended. */
export class McpConnection {
  readonly client = new Client({ name: 'palestra', version: VERSION }, { capabilities: {}, jsonSchemaValidator: unchecked });
  #transport: Transport | null = null;
  /** Why it has ended. */
  #failure: PalestraError | null = null;
  /** The error of requests whose stream was too large. */
  #refusal: PalestraError | null = null;
  #closing = false;
  #tools: Promise<ToolSpec[]> | null = null;
  /** Ids of pending HTTP requests. */
  readonly #waiting = new Set<string | number>();
  readonly #resuming = new Set<string | number>();

  private constructor() {
    this.client.onclose = () => this.#fail('Its connection was closed.');
    this.client.setNotificationHandler(ToolListChangedNotificationSchema, () => void (this.#tools = null));
  }

  /** Throws `backend_unreachable` (nothing ran), `backend_invalid`, `capacity_exhausted`. */
  static async open(server: McpServer, options: { agent: Agent; secrets: SecretMap }, signal: AbortSignal): Promise<McpConnection> {
    if ('command' in server) {
      const transport = new StdioTransport(server.command, server.args);
      return McpConnection.#connect((connection) => connection.#adopt(transport), signal);
    }
    const { url: bare, headers } = splitCredentials(server.url);
    const url = new URL(bare);
    if (Object.keys(options.secrets).length > 0) headers['x-secrets'] = Buffer.from(JSON.stringify(options.secrets)).toString('base64');
    const requestInit = { headers };
    try {
      return await McpConnection.#connect((connection) => {
        const fetch = observedFetch(options.agent, {
          ended: (id, resumable) => connection.#ended(id, resumable),
          refused: (error) => connection.#refuse(error),
        });
        return connection.#adopt(new StreamableHTTPClientTransport(url, { requestInit, fetch }) as Transport);
      }, signal);
    } catch (error) {
      // The protocol detects a server of 2024-11-05 by these statuses.
      const status = error instanceof PalestraError ? statusOf(error.cause) : null;
      if (status === null || ![400, 404, 405, 406, 415].includes(status)) throw error;
      const older = (connection: McpConnection) => {
        const fetch = observedFetch(options.agent, { ended: () => {}, refused: (refusal) => connection.#refuse(refusal) });
        return connection.#adopt(new SSEClientTransport(url, { requestInit, fetch }));
      };
      return McpConnection.#connect(older, signal).catch(() => Promise.reject(error));
    }
  }

  static async #connect(adopt: (connection: McpConnection) => Transport, signal: AbortSignal): Promise<McpConnection> {
    const connection = new McpConnection();
    const transport = adopt(connection);
    try {
      await withSignal(signal, (options) => connection.client.connect(transport, options));
      return connection;
    } catch (error) {
      await connection.close();
      signal.throwIfAborted();
      throw openingError(connection.#refusal ?? error, connection.#stderr());
    }
  }

  get failure(): PalestraError | null {
    return this.#failure;
  }

  /** The process id; null for a server at a URL. */
  get pid(): number | null {
    return this.#transport instanceof StdioTransport ? this.#transport.pid : null;
  }

  /** Sends one request. Rejects with a `PalestraError`, or with `ToolFailedError` if the server answered with an error. */
  async request<T>(signal: AbortSignal, ask: (client: Client, options: RequestOptions) => Promise<T>): Promise<T> {
    if (this.#failure !== null) throw this.#failure;
    try {
      return await withSignal(signal, (options) => ask(this.client, options));
    } catch (error) {
      signal.throwIfAborted();
      throw this.#refusal ?? this.#failure ?? requestError(error);
    }
  }

  /** The tools of all pages. Read again after the server reports a change. */
  async tools(signal: AbortSignal): Promise<ToolSpec[]> {
    if (this.client.getServerCapabilities()?.tools === undefined) return [];
    this.#tools ??= this.#listTools(signal);
    try {
      return await this.#tools;
    } catch (error) {
      this.#tools = null;
      throw error;
    }
  }

  async #listTools(signal: AbortSignal): Promise<ToolSpec[]> {
    const tools: ToolSpec[] = [];
    let size = 0;
    let cursor: string | undefined;
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const params = cursor === undefined ? {} : { cursor };
      const answer = await this.request(signal, (client, options) => client.listTools(params, options));
      size += JSON.stringify(answer.tools).length;
      if (size > ANSWER_LIMITS.metadata) throw answerTooLarge(ANSWER_LIMITS.metadata);
      for (const tool of answer.tools) tools.push(toolSpecOf(tool));
      cursor = answer.nextCursor;
      if (cursor === undefined) return tools;
    }
    throw new PalestraError('backend_invalid', { detail: 'The list of tools of the MCP server has no end.' });
  }

  /** Ends the MCP session at the server, the connection and the child process. Idempotent. */
  async close(): Promise<void> {
    if (this.#closing) return;
    this.#closing = true;
    const transport = this.#transport;
    this.#failure ??= lost('It was closed.');
    if (transport instanceof StreamableHTTPClientTransport && transport.sessionId !== undefined) {
      const patience = new Promise((resolve) => setTimeout(resolve, TERMINATE_MS).unref());
      await Promise.race([transport.terminateSession().catch(() => {}), patience]);
    }
    // A client that failed to connect has no transport, so `client.close` is not enough.
    await transport?.close().catch(() => {});
  }

  #adopt<T extends Transport>(transport: T): Transport {
    this.#transport = transport;
    transport.onmessage = (message: JSONRPCMessage) => {
      if (!('method' in message) && 'id' in message && message.id !== undefined) this.#answered(message.id);
    };
    transport.onerror = (error) => {
      if (error instanceof SseError && this.#failure === null) this.#fail('Its event stream failed.');
      if (error.message.startsWith('Maximum reconnection attempts')) for (const id of this.#resuming) this.#interrupt(id);
    };
    const send = transport.send.bind(transport);
    transport.send = async (message, options) => {
      const id = 'method' in message && 'id' in message ? message.id : null;
      if (id !== null) this.#waiting.add(id);
      try {
        await send(message, options);
      } catch (error) {
        if (id !== null) this.#answered(id);
        throw error;
      }
    };
    return transport;
  }

  #answered(id: string | number): void {
    this.#waiting.delete(id);
    this.#resuming.delete(id);
  }

  #ended(id: string | number, resumable: boolean): void {
    if (!this.#waiting.has(id)) return;
    if (resumable) this.#resuming.add(id);
    else this.#interrupt(id);
  }

  /** Fails a request whose response will never come. */
  #interrupt(id: string | number): void {
    this.#answered(id);
    const error = { code: RESPONSE_INTERRUPTED, message: 'Its response was interrupted; whether the tool ran is unknown.' };
    this.#transport?.onmessage?.({ jsonrpc: '2.0', id, error });
  }

  #refuse(error: PalestraError): void {
    this.#refusal ??= error;
    this.#fail(error.message);
  }

  #fail(reason: string): void {
    this.#failure ??= lost(reason + this.#stderr());
    void this.close();
  }

  #stderr(): string {
    const text = this.#transport instanceof StdioTransport ? this.#transport.stderr : '';
    return text === '' ? '' : ` Its last error output: ${text}`;
  }
}

/** The SDK never removes its listener from a signal, so each request gets its own signal. */
async function withSignal<T>(signal: AbortSignal, work: (options: RequestOptions) => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  const request = new AbortController();
  let onAbort = () => {};
  const aborted = new Promise<never>((_resolve, reject) => {
    onAbort = () => {
      request.abort(signal.reason);
      reject(signal.reason as Error);
    };
    signal.addEventListener('abort', onAbort, { once: true });
  });
  const working = work({ signal: request.signal, timeout: NO_TIMEOUT });
  try {
    return await Promise.race([working, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
    working.catch(() => {});
  }
}
