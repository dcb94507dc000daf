import type { JsonObject, MessageBlock, TaskSpec } from '@palestra/protocol';
import type { McpConnection } from './mcp-connection.ts';
import { blockOf } from '../wire/from-mcp.ts';

/** Name of the server's prompt for its task. */
const TASK_PROMPT = 'task';
const MAX_PAGES = 20;

const textBlock = (text: string): MessageBlock => ({ text, detail: null, type: 'text' });

/** The text of a task (`prompt` or `question`, as in task sets); null without one. */
export function promptOfTask(task: TaskSpec): string | null {
  const spec = objectOf(task);
  for (const key of ['prompt', 'question']) if (typeof spec[key] === 'string') return spec[key];
  return null;
}

const objectOf = (task: TaskSpec): JsonObject =>
  typeof task === 'object' && task !== null && !Array.isArray(task) ? (task as JsonObject) : {};

/** The server's prompt `task`, otherwise its `instructions`, otherwise its name and description. */
export async function promptOfServer(connection: McpConnection, task: TaskSpec, signal: AbortSignal): Promise<MessageBlock[]> {
  const prompt = await taskPrompt(connection, task, signal);
  if (prompt !== null) return prompt;
  const instructions = connection.client.getInstructions();
  if (instructions !== undefined && instructions.trim() !== '') return [textBlock(instructions)];
  const server = connection.client.getServerVersion();
  const parts = [server?.title ?? server?.name, server?.description].filter((text) => text !== undefined && text !== '');
  return [textBlock(parts.join('\n\n'))];
}

/** null: there is no such prompt, or the task lacks its arguments. */
async function taskPrompt(connection: McpConnection, task: TaskSpec, signal: AbortSignal): Promise<MessageBlock[] | null> {
  if (connection.client.getServerCapabilities()?.prompts === undefined) return null;
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const params = cursor === undefined ? {} : { cursor };
    const answer = await connection.request(signal, (client, options) => client.listPrompts(params, options));
    const found = answer.prompts.find(({ name }) => name === TASK_PROMPT);
    if (found !== undefined) {
      const promptArguments = argumentsOf(task, found.arguments ?? []);
      if (promptArguments === null) return null;
      const prompt = await connection.request(signal, (client, options) =>
        client.getPrompt({ name: TASK_PROMPT, arguments: promptArguments }, options),
      );
      return prompt.messages.map(({ content }) => blockOf(content));
    }
    cursor = answer.nextCursor;
    if (cursor === undefined) return null;
  }
  return null;
}

/** MCP passes arguments of prompts as strings. */
function argumentsOf(task: TaskSpec, declared: { name: string; required?: boolean | undefined }[]): Record<string, string> | null {
  const spec = objectOf(task);
  const values: Record<string, string> = {};
  for (const { name, required } of declared) {
    const value = spec[name];
    if (value !== undefined && value !== null) values[name] = typeof value === 'string' ? value : String(value);
    else if (required) return null;
  }
  return values;
}
