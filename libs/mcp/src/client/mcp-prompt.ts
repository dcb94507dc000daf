import type { JsonObject, MessageBlock, TaskSpec } from '@palestra/protocol';
import type { McpConnection } from './mcp-connection.ts';
import { blockOf } from '../wire/from-mcp.ts';

/** The prompt of a server that has one for its task. */
const TASK_PROMPT = 'task';
const MAX_PAGES = 20;

const textBlock = (text: string): MessageBlock => ({ text, detail: null, type: 'text' });

/** What a task says itself (`prompt` or `question`, as task sets have it); null when it says nothing. */
export function promptOfTask(task: TaskSpec): string | null {
  const spec = objectOf(task);
  for (const key of ['prompt', 'question']) if (typeof spec[key] === 'string') return spec[key];
  return null;
}

const objectOf = (task: TaskSpec): JsonObject =>
  typeof task === 'object' && task !== null && !Array.isArray(task) ? (task as JsonObject) : {};

/** The server's prompt `task`, else its `instructions`, else its name and description. */
export async function promptOfServer(connection: McpConnection, task: TaskSpec, signal: AbortSignal): Promise<MessageBlock[]> {
  const own = await taskPrompt(connection, task, signal);
  if (own !== null) return own;
  const instructions = connection.client.getInstructions();
  if (instructions !== undefined && instructions.trim() !== '') return [textBlock(instructions)];
  const about = connection.client.getServerVersion();
  const words = [about?.title ?? about?.name, about?.description].filter((text) => text !== undefined && text !== '');
  return [textBlock(words.join('\n\n'))];
}

/** null where there is no such prompt, or where it wants arguments that the task does not have. */
async function taskPrompt(connection: McpConnection, task: TaskSpec, signal: AbortSignal): Promise<MessageBlock[] | null> {
  if (connection.client.getServerCapabilities()?.prompts === undefined) return null;
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const params = cursor === undefined ? {} : { cursor };
    const answer = await connection.request(signal, (client, options) => client.listPrompts(params, options));
    const found = answer.prompts.find(({ name }) => name === TASK_PROMPT);
    if (found !== undefined) {
      const given = argumentsOf(task, found.arguments ?? []);
      if (given === null) return null;
      const prompt = await connection.request(signal, (client, options) =>
        client.getPrompt({ name: TASK_PROMPT, arguments: given }, options),
      );
      return prompt.messages.map(({ content }) => blockOf(content));
    }
    cursor = answer.nextCursor;
    if (cursor === undefined) return null;
  }
  return null;
}

/** MCP's arguments of prompts are texts. */
function argumentsOf(task: TaskSpec, declared: { name: string; required?: boolean | undefined }[]): Record<string, string> | null {
  const spec = objectOf(task);
  const given: Record<string, string> = {};
  for (const { name, required } of declared) {
    const value = spec[name];
    if (value !== undefined && value !== null) given[name] = typeof value === 'string' ? value : String(value);
    else if (required) return null;
  }
  return given;
}
