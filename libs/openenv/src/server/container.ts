import { type JsonObject, parseJson, stringifyJson } from '@palestra/protocol';
import { OpenEnvError } from '../wire/errors.ts';
import { floatText, type Reply } from '../wire/client-replies.ts';
import type { ClientConnection } from './client-connection.ts';

/**
 * The body for a client up to 0.1: `{observation, reward, done}` without metadata, which its observation classes reject. Stores the
 * observation in `lastObservation`. Throws `OpenEnvError` for an error frame.
 */
export function containerBodyOf(connection: ClientConnection, reply: Reply): string {
  if (reply.kind === 'state') return reply.text;
  if (reply.kind === 'mcp') return reply.text;
  const seen = reply.kind === 'observation' ? reply : fromFrame(reply.text);
  if (typeof seen === 'string') return seen;
  const { metadata: _metadata, ...observation } = parseJson(seen.observation) as JsonObject;
  const text = stringifyJson(observation);
  connection.lastObservation = `{"observation":${text},"reward":null,"done":${seen.done}}`;
  return `{"observation":${text},"reward":${floatText(seen.reward)},"done":${seen.done}}`;
}

interface FrameObservation {
  observation: string;
  reward: string;
  done: boolean;
}

/** Reads a frame of an OpenEnv server. Returns the text of a state; throws an error. */
function fromFrame(text: string): FrameObservation | string {
  const { type, data } = parseJson(text) as { type: string; data: JsonObject };
  if (type === 'state') return stringifyJson(data);
  if (type === 'error') {
    const { message, code, ...extra } = data;
    throw new OpenEnvError(code as 'EXECUTION_ERROR', String(message), extra);
  }
  return {
    observation: stringifyJson(data['observation'] ?? {}),
    reward: stringifyJson(data['reward'] ?? null),
    done: data['done'] === true,
  };
}
