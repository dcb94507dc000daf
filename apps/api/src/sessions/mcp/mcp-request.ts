import type { FastifyRequest } from 'fastify';
import { type JsonObject, PalestraError, parseJson, toPlainNumber } from '@palestra/protocol';

export const SESSION_HEADER = 'mcp-session-id';
export const SPLIT_HEADER = 'x-palestra-split';
export const INDEX_HEADER = 'x-palestra-index';

/** The parts of a POST body that are needed before the SDK reads it. */
export interface McpMessage {
  /** Passed to the SDK: one message or, from clients of 2025-03-26, a list. */
  parsed: unknown;
  /** null: a list, a notification, a response or invalid JSON-RPC. */
  request: { id: string | number; method: string } | null;
  /** A complete `tools/call`; its input keeps the spelling of numbers. */
  call: { tool: string; input: JsonObject; progressToken: string | number | undefined } | null;
}

const isObject = (value: unknown): value is JsonObject => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Throws `invalid_json`. */
export function readMessage(body: unknown): McpMessage {
  const text = Buffer.isBuffer(body) ? body.toString('utf8') : '';
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (cause) {
    throw new PalestraError('invalid_json', { cause });
  }
  if (!isObject(parsed) || typeof parsed['method'] !== 'string') return { parsed, request: null, call: null };
  const { id, method } = parsed;
  if (typeof id !== 'string' && typeof id !== 'number') return { parsed, request: null, call: null };
  return { parsed, request: { id, method }, call: method === 'tools/call' ? readCall(parseJson(text) as JsonObject) : null };
}

/** null if malformed; the SDK refuses it. */
function readCall({ params }: JsonObject): McpMessage['call'] {
  if (!isObject(params) || typeof params['name'] !== 'string') return null;
  const { name: tool, arguments: input = {}, _meta: meta } = params;
  const token = isObject(meta) ? (meta['progressToken'] ?? null) : null;
  const progressToken = typeof token === 'string' ? token : (toPlainNumber(token) ?? undefined);
  return isObject(input) ? { tool, input, progressToken } : null;
}

/** A trimmed header; null if empty. */
export function headerOf({ headers }: Pick<FastifyRequest, 'headers'>, name: string): string | null {
  const value = headers[name];
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : null;
}

/** From the query, otherwise from the header, for clients that cannot choose the URL. */
export function optionOf(request: FastifyRequest, query: string, header: string): string | null {
  const value = (request.query as Record<string, unknown>)[query];
  return typeof value === 'string' && value !== '' ? value : headerOf(request, header);
}
