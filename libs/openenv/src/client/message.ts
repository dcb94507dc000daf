import { isObject, PalestraError, stringifyJson } from '@palestra/protocol';
import type { OpenEnvMessage } from '../wire/native.ts';
import { MAX_SENT_BYTES } from './socket.ts';
import { readJson } from '../wire/server-replies.ts';

/** The only tool of an action environment. OpenEnv reserves the name, so no tool of a server has it. */
export const STEP = 'step';

/** Whether a message can change the episode. Such a message is never sent twice. */
export function changesEpisode(message: OpenEnvMessage): boolean {
  if (message.type === 'reset') return true;
  if (message.type === 'step') return message.data['type'] !== 'list_tools';
  if (message.type === 'state') return false;
  return !isObject(message.data) || message.data['method'] !== 'tools/list';
}

/** The frame of a message. Throws `body_too_large` for a frame that makes the server close the socket. */
export function frameOf(message: OpenEnvMessage): string {
  const text = stringifyJson(message.type === 'mcp' ? { type: 'mcp', data: withoutSession(message.data) } : message);
  if (text.length > MAX_SENT_BYTES / 4 && Buffer.byteLength(text) > MAX_SENT_BYTES) {
    throw new PalestraError('body_too_large', { detail: 'A message to an OpenEnv server may have 16 MiB at most.' });
  }
  return text;
}

/** Removes our session id: on a socket the server knows its own. */
function withoutSession(request: unknown): unknown {
  if (!isObject(request) || !isObject(request['params']) || !('session_id' in request['params'])) return request;
  const { session_id: _sessionId, ...params } = request['params'];
  return { ...request, params };
}

const REPLY = { reset: 'observation', step: 'observation', state: 'state', mcp: 'mcp' } as const;

/** Whether a frame can be the reply to this message. Replies have no ids, so their kinds are compared. */
export function replyFits(message: OpenEnvMessage, reply: string): boolean {
  // Servers write the type first, and observations can be long.
  const quick = /^\{"type":"(\w+)","data":\{/.exec(reply)?.[1];
  if (message.type !== 'mcp' && quick !== undefined) return quick === 'error' || quick === REPLY[message.type];
  let frame: unknown;
  try {
    frame = readJson(reply, 'a reply');
  } catch {
    return false;
  }
  if (!isObject(frame) || !isObject(frame['data'])) return false;
  if (frame['type'] === 'error') return true;
  if (frame['type'] !== REPLY[message.type]) return false;
  if (message.type !== 'mcp' || !isObject(message.data)) return true;
  const { id } = frame['data'];
  // An invalid request has no id in its response.
  return id === null || String(id) === String(message.data['id'] ?? null);
}
