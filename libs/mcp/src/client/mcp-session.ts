import { ErrorCode, McpError, type Progress, ResultSchema } from '@modelcontextprotocol/sdk/types.js';
import {
  type JsonObject,
  type Message,
  type MessageBlock,
  PalestraError,
  stringifyJson,
  type TaskSpec,
  type ToolsAnswer,
} from '@palestra/protocol';
import { type BackendCall, type BackendSession, type CallProgress, type ToolCallResult, ToolFailedError } from '@palestra/session';
import type { McpConnection } from './mcp-connection.ts';
import { callError, lost, messageOf } from './mcp-errors.ts';
import { promptOfServer, promptOfTask } from './mcp-prompt.ts';
import { refusal, resultOf } from '../wire/from-mcp.ts';

/** An open episode of this process. */
export interface OpenEpisode {
  connection: McpConnection;
  task: TaskSpec;
}

export interface Episodes {
  get(sid: string): OpenEpisode | undefined;
  /** Ends the connection and the process. Idempotent. */
  end(sid: string): Promise<void>;
}

/** One episode on an MCP server, with its own MCP session. */
export class McpSession implements BackendSession {
  readonly #episodes: Episodes;
  readonly #sid: string;

  constructor(episodes: Episodes, sid: string) {
    this.#episodes = episodes;
    this.#sid = sid;
  }

  async ready(): Promise<void> {
    this.#episode();
  }

  async prompt(signal: AbortSignal): Promise<MessageBlock[]> {
    const { connection, task } = this.#episode();
    const taskPrompt = promptOfTask(task);
    return taskPrompt === null
      ? this.#watched(promptOfServer(connection, task, signal))
      : [{ text: taskPrompt, detail: null, type: 'text' }];
  }

  async messages(): Promise<Message[]> {
    throw new PalestraError('messages_unsupported');
  }

  async taskTools(signal: AbortSignal): Promise<ToolsAnswer> {
    return { tools: await this.#watched(this.#episode().connection.tools(signal)) };
  }

  /** Sends a call once. If its response is lost, the outcome is unknown and the session ends. */
  async call({ tool, input, taskId, upstreamTaskId, mayHaveRun, onProgress }: BackendCall, signal: AbortSignal): Promise<ToolCallResult> {
    if (upstreamTaskId != null || mayHaveRun) throw new PalestraError('session_lost');
    const { connection } = this.#episode();
    // The caller stopped waiting. The tool could run forever, so its server is ended.
    const giveUp = () => void this.#episodes.end(this.#sid);
    signal.addEventListener('abort', giveUp, { once: true });
    try {
      return await this.#watched(callTool(connection, { tool, input, taskId, onProgress }, signal));
    } finally {
      signal.removeEventListener('abort', giveUp);
    }
  }

  async scoreGroup(): Promise<string> {
    throw new PalestraError('score_group_unsupported');
  }

  async ping(signal: AbortSignal): Promise<void> {
    await this.#episode().connection.request(signal, (client, options) => client.ping(options));
  }

  async delete(): Promise<void> {
    await this.#episodes.end(this.#sid);
  }

  #episode(): OpenEpisode {
    const episode = this.#episodes.get(this.#sid);
    if (episode === undefined) throw lost('');
    return episode;
  }

  /** A lost session is never deleted by its client, so it is ended here. */
  async #watched<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      if (error instanceof PalestraError && error.code === 'session_lost') void this.#episodes.end(this.#sid);
      throw error;
    }
  }
}

async function callTool(
  connection: McpConnection,
  {
    tool,
    input,
    taskId,
    onProgress,
  }: Pick<BackendCall, 'tool' | 'input' | 'taskId'> & { onProgress: BackendCall['onProgress'] | undefined },
  signal: AbortSignal,
): Promise<ToolCallResult> {
  // The SDK serialises plain numbers only.
  const plain = JSON.parse(stringifyJson(input)) as Record<string, unknown>;
  const params = { name: tool, arguments: plain, _meta: { 'palestra/call_id': taskId } };
  const isUnknown = async () => !(await connection.tools(signal)).some(({ name }) => name === tool);
  try {
    // `callTool` would refuse results that do not match the tool's output schema.
    const result = await connection.request(signal, (client, options) =>
      client.request({ method: 'tools/call', params }, ResultSchema, {
        ...options,
        ...(onProgress && { onprogress: (progress) => onProgress(progressOf(progress)) }),
      }),
    );
    // Many servers answer an unknown tool with an error result.
    if (result['isError'] === true && (await isUnknown())) return notFound(tool);
    return resultOf(result as JsonObject);
  } catch (error) {
    if (!(error instanceof ToolFailedError) || !(error.cause instanceof McpError)) throw callError(error);
    if (await isUnknown()) return notFound(tool);
    if (error.cause.code === Number(ErrorCode.InvalidParams)) {
      return refusal('input_validation', `Tool input validation error: ${messageOf(error.cause)}`);
    }
    throw error;
  }
}

const progressOf = ({ progress, total, message }: Progress): CallProgress => ({
  progress,
  ...(total !== undefined && { total }),
  ...(message !== undefined && { message }),
});

const notFound = (tool: string): ToolCallResult => refusal('not_found', `'${tool}' is not a valid tool`);
