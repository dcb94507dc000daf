import { isObject, type JsonObject, type JsonValue, type ToolsAnswer, type ToolSpec } from '@palestra/protocol';
import { PalestraError } from '@palestra/protocol';
import type { OpenEnvMessage, OpenEnvShape } from '../wire/native.ts';
import { STEP } from './message.ts';
import { notOpenEnv, readReply, readRpc, openingError } from '../wire/server-replies.ts';

const LIST: JsonObject = { jsonrpc: '2.0', id: 'tools', method: 'tools/list', params: {} };

/** Versions of the library spell the key of the schema differently. */
function readTool(tool: JsonValue): ToolSpec {
  if (!isObject(tool) || typeof tool['name'] !== 'string') throw notOpenEnv('sent a tool without a name');
  const schema = isObject(tool['input_schema']) ? tool['input_schema'] : tool['inputSchema'];
  return {
    name: tool['name'],
    description: typeof tool['description'] === 'string' ? tool['description'] : '',
    input_schema: !isObject(schema) || 'type' in schema ? ((schema as JsonObject | undefined) ?? null) : { ...schema, type: 'object' },
  };
}

function readTools(tools: JsonValue): ToolsAnswer {
  if (!Array.isArray(tools)) throw notOpenEnv('sent no list of tools');
  return { tools: tools.map(readTool) };
}

/** The tools in a JSON-RPC response; null if the server lists them by actions only. */
export function toolsOfRpc(response: JsonValue): ToolsAnswer | null {
  const read = readRpc(response);
  return 'result' in read && Array.isArray(read.result['tools']) ? readTools(read.result['tools']) : null;
}

/**
 * Lists the tools of a session, also before a reset. Uses JSON-RPC if the server has it, because some environments count `list_tools` as a
 * step.
 */
export async function sessionTools(send: (message: OpenEnvMessage) => Promise<string>): Promise<ToolsAnswer> {
  const listed = readReply(await send({ type: 'mcp', data: LIST }));
  const tools = listed.type === 'mcp' ? toolsOfRpc(listed.data) : null;
  if (tools !== null) return tools;
  const reply = readReply(await send({ type: 'step', data: { type: 'list_tools' } }));
  if (reply.type === 'error') {
    if (reply.code === 'EXECUTION_ERROR' || reply.code === 'VALIDATION_ERROR') {
      throw new PalestraError('environment_failed', { detail: `The environment lists no tools: ${reply.message}` });
    }
    throw openingError(reply);
  }
  const observation = reply.data['observation'];
  return readTools(isObject(observation) ? observation['tools'] : undefined);
}

/** The only tool of an action environment, with the published schema of its action. */
export function stepTool({ schema, metadata }: Pick<OpenEnvShape, 'schema' | 'metadata'>): ToolsAnswer {
  const action = isObject(schema['action']) ? schema['action'] : {};
  const { metadata: _metadata, ...properties } = isObject(action['properties']) ? action['properties'] : {};
  const required = Array.isArray(action['required']) ? { required: action['required'].filter((name) => name !== 'metadata') } : {};
  const description = [action['description'], metadata['description']].find((text) => typeof text === 'string' && text !== '');
  return {
    tools: [
      {
        name: STEP,
        description: typeof description === 'string' ? description : 'Takes one action in the environment.',
        input_schema: { ...action, type: 'object', properties, ...required },
      },
    ],
  };
}
