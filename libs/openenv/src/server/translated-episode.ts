import {
  type JsonObject,
  type JsonValue,
  type MessageBlock,
  PalestraError,
  parseJson,
  stringifyJson,
  type ToolsAnswer,
} from '@palestra/protocol';
import { type CallOutcome, errorOfOutcome } from '@palestra/session';
import { actionIssues, readToolAction } from './actions.ts';
import type { Episode, EpisodeContext } from './episode.port.ts';
import { invalid, issue, OpenEnvError } from '../wire/errors.ts';
import { ACTION_TOOL, listedTools, toolsText } from './environment-info.ts';
import { RpcError, type RpcRequest } from '../wire/json-rpc.ts';
import { chatOf, promptOf } from './prompt.ts';
import { rewardText, type Observed, type Reply } from '../wire/client-replies.ts';
import { openSession, reserveSlot } from './open-session.ts';
import { chooseTask, type TaskChoice } from './task-choice.ts';
import { blocksObservation, observationOf, refusalOf, toolResultOf, type ToolErrorType, withMetadata } from './tool-result.ts';

const RESET_FIRST = 'The episode has not begun: send a reset first.';

/** Episodes of an environment whose server does not speak OpenEnv: a reset opens an engine session, a step calls a tool. */
export class TranslatedEpisode implements Episode {
  sid: string | null = null;
  isOpen = false;
  #episodeId: string | null = null;
  #steps = 0;
  /** Steps before `resume` are not in `#steps` yet. */
  #hasEarlierSteps = false;
  #split: string | null = null;
  #index: number | null = null;
  /** JSON text of the task's tools. */
  #tools: string;

  constructor(readonly context: EpisodeContext) {
    this.#tools = context.shape.tools;
  }

  async reserve(): Promise<void> {
    this.sid = this.context.connection.nextSid();
    await reserveSlot(this.context, this.sid);
  }

  resume(sid: string, isOpen: boolean, isStepped: boolean): void {
    this.sid = sid;
    this.isOpen = isOpen;
    // The ledger does not tell steps from JSON-RPC calls, and only steps count.
    this.#hasEarlierSteps = isOpen && isStepped;
  }

  async reset(data: JsonObject): Promise<Observed> {
    const { engine, caller, shape } = this.context;
    const choice = await chooseTask(this.context.info, data);
    const sid = await this.#open(choice);
    this.#episodeId = typeof data['episode_id'] === 'string' ? data['episode_id'] : null;
    try {
      const [prompt, tools] = await Promise.all([
        engine.prompt(caller, sid),
        shape.toolActions ? engine.taskTools(caller, sid).then((answer) => this.#setTools(answer)) : '',
      ]);
      return await this.#openingObservation(choice, sid, prompt, tools);
    } catch (error) {
      await this.end();
      // A prompt that raises is not a failed constructor.
      if (error instanceof PalestraError && error.code === 'environment_failed')
        throw new OpenEnvError('EXECUTION_ERROR', error.message, {}, error);
      throw error;
    }
  }

  async #open(choice: TaskChoice): Promise<string> {
    this.sid = this.sid !== null && !this.isOpen ? this.sid : await this.#next();
    try {
      this.sid = await openSession(this.context, this.sid, choice.task);
    } catch (error) {
      this.sid = null;
      throw taskError(error);
    }
    this.isOpen = true;
    this.#steps = 0;
    this.#hasEarlierSteps = false;
    this.#split = choice.split;
    this.#index = choice.index;
    return this.sid;
  }

  async #next(): Promise<string> {
    await this.end();
    return this.context.connection.nextSid();
  }

  #setTools(answer: ToolsAnswer): string {
    const text = toolsText(listedTools(answer));
    // Thousands of sockets share one text.
    this.#tools = text === this.context.shape.tools ? this.context.shape.tools : text;
    return this.#tools;
  }

  async #openingObservation({ split, index, id }: TaskChoice, sid: string, prompt: MessageBlock[], tools: string): Promise<Observed> {
    const task: JsonObject = { split, index, ...(id !== null && { id }) };
    const { engine, caller, shape } = this.context;
    if (!shape.toolActions) {
      const detail = (prompt[0]?.detail ?? {}) as JsonObject;
      return observed(stringifyJson({ ...detail, task, session_id: sid }), blocksObservation(prompt));
    }
    const { text, isConversation } = promptOf(prompt);
    const messages = isConversation ? await engine.messages(caller, sid).catch(nullIfUnsupported) : null;
    const conversation = messages === null ? '' : `,"messages":${JSON.stringify(chatOf(messages))}`;
    return observed(stringifyJson({ task, session_id: sid }), `{"prompt":${JSON.stringify(text)}${conversation},"tools":${tools}}`);
  }

  step(action: JsonObject): Promise<Reply> | Reply {
    const { shape } = this.context;
    if (!shape.toolActions) return this.#stepAction(action);
    const read = readToolAction(action);
    if (read === 'list_tools')
      return { kind: 'observation', observation: `{"metadata":{},"tools":${this.#tools}}`, reward: 'null', done: false, metadata: null };
    return this.#callTool(read.tool, read.input);
  }

  async #callTool(tool: string, input: JsonObject): Promise<Observed> {
    const outcome = await this.#call(tool, input);
    this.#steps += 1;
    const name = JSON.stringify(tool);
    if (outcome.type === 'tool_failed') return failed(name, 'execution_error', outcome.message, false);
    if (!outcome.ok) {
      const { type, message } = refusalOf(outcome, tool);
      return failed(name, type, message, outcome.reason === 'episode_finished');
    }
    const { result, metadata } = toolResultOf(outcome);
    return {
      kind: 'observation',
      observation: `{"metadata":${metadata ?? '{}'},"tool_name":${name},"result":${result},"error":null}`,
      reward: rewardText(outcome.reward),
      done: outcome.finished,
      metadata,
    };
  }

  async #stepAction(action: JsonObject): Promise<Observed> {
    const { shape } = this.context;
    const { metadata: _metadata, ...input } = action;
    const issues = actionIssues(shape.schema['action'] as JsonObject, action);
    if (issues.length > 0) throw invalid(issues);
    const outcome = await this.#call(ACTION_TOOL, input);
    if (outcome.type === 'tool_failed') {
      this.#steps += 1;
      throw new OpenEnvError('EXECUTION_ERROR', outcome.message);
    }
    if (!outcome.ok) {
      const { type, message } = refusalOf(outcome, ACTION_TOOL);
      if (type !== 'invalid_args') throw new OpenEnvError('EXECUTION_ERROR', message);
      throw invalid([issue('value_error', [], action, `Value error, ${message}`)]);
    }
    this.#steps += 1;
    const { observation, metadata } = observationOf(outcome);
    return {
      kind: 'observation',
      observation: withMetadata(metadata, observation),
      reward: rewardText(outcome.reward),
      done: outcome.finished,
      metadata,
    };
  }

  /** Returns the outcome of a tool that ran or that the environment refused to run. Rejects otherwise. */
  async #call(tool: string, input: JsonObject): Promise<Exclude<CallOutcome, { type: 'refused' }>> {
    if (!this.isOpen) throw new OpenEnvError('EXECUTION_ERROR', RESET_FIRST);
    const { engine, caller } = this.context;
    const outcome = await engine.callWithoutResume(caller, this.sid!, tool, input);
    if (outcome.type === 'refused') throw errorOfOutcome(outcome);
    return outcome;
  }

  state(): Promise<Reply> | Reply {
    return this.#hasEarlierSteps ? this.#countSteps().then(() => this.#state()) : this.#state();
  }

  /** Counts the steps in the ledger, also those that another process served. */
  async #countSteps(): Promise<void> {
    const { engine, caller, shape } = this.context;
    const calls = await engine.endedCalls(caller, this.sid!);
    // A refused action is not a step; a refused tool call is.
    this.#steps = calls.filter((outcome) => shape.toolActions || outcome.type !== 'result' || outcome.ok).length;
    this.#hasEarlierSteps = false;
  }

  #state(): Reply {
    this.#episodeId ??= crypto.randomUUID();
    const { sid } = this;
    const state = { episode_id: this.#episodeId, step_count: this.#steps, split: this.#split, index: this.#index, session_id: sid };
    return { kind: 'state', text: JSON.stringify(state) };
  }

  async rpc({ method, params }: RpcRequest): Promise<string> {
    const { shape } = this.context;
    if (!shape.toolActions) throw new RpcError(-32603, 'Environment does not support MCP');
    if (method === 'tools/list') return listResult(this.#tools);
    const name = params['name'];
    if (typeof name !== 'string' || name === '') throw new RpcError(-32602, "Missing 'name' in params");
    const input = params['arguments'] ?? {};
    if (typeof input !== 'object' || Array.isArray(input)) throw new RpcError(-32602, "'arguments' must be an object");
    // MCP clients do not reset.
    if (!this.isOpen) await this.reset({});
    const outcome = await this.#call(name, input as JsonObject);
    if (outcome.type === 'tool_failed') throw new RpcError(-32603, outcome.message);
    if (!outcome.ok) throw new RpcError(-32603, refusalOf(outcome, name).message);
    return toolResultOf(outcome).result;
  }

  async end(): Promise<void> {
    const { sid } = this;
    this.sid = null;
    this.isOpen = false;
    if (sid !== null) await this.context.engine.delete(this.context.caller, sid);
  }
}

function observed(metadata: string, observation: string): Observed {
  return { kind: 'observation', observation: withMetadata(metadata, observation), reward: 'null', done: false, metadata };
}

function failed(name: string, type: ToolErrorType, message: string, done: boolean): Observed {
  const error = `{"error_type":"${type}","message":${JSON.stringify(message)}}`;
  const observation = `{"metadata":{},"tool_name":${name},"result":null,"error":${error}}`;
  return { kind: 'observation', observation, reward: 'null', done, metadata: null };
}

/** Result of `tools/list` with MCP's keys. */
function listResult(tools: string): string {
  const listed = (parseJson(tools) as { name: string; description: string; input_schema: JsonValue }[]).map(
    ({ name, description, input_schema: schema }) => ({
      name,
      title: null,
      description,
      inputSchema: schema,
      outputSchema: null,
      icons: null,
      annotations: null,
      meta: null,
      execution: null,
    }),
  );
  return stringifyJson({ tools: listed });
}

function nullIfUnsupported(error: unknown): null {
  if (error instanceof PalestraError && error.code === 'messages_unsupported') return null;
  throw error;
}

const OF_TASK: ReadonlySet<string> = new Set(['invalid_split', 'invalid_index', 'invalid_index_range', 'invalid_body']);

/** An unknown task is an error of the client, which can ask for another task. */
function taskError(error: unknown): unknown {
  const isTaskError = error instanceof PalestraError && OF_TASK.has(error.code);
  return isTaskError ? new OpenEnvError('EXECUTION_ERROR', error.message, {}, error) : error;
}
