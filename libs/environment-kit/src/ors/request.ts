import { CALL_ID_HEADER } from '@palestra/kit/sse';
import { PalestraError } from '@palestra/protocol';
import type { IncomingMessage, ServerResponse } from 'node:http';

const MAX_BODY_BYTES = 64 * 1024 * 1024;

export async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_BODY_BYTES) throw new PalestraError('body_too_large');
    chunks.push(chunk);
  }
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
}

export function sessionIdOf(request: IncomingMessage): string {
  const header = request.headers['x-session-id'];
  const sid = typeof header === 'string' ? header.trim() : '';
  if (sid === '') throw new PalestraError('session_id_required');
  return sid;
}

/** The call id of the client; null if it sent none. */
export function callIdOf(request: IncomingMessage): string | null {
  const header = request.headers[CALL_ID_HEADER];
  return typeof header === 'string' && /^[0-9a-f]{32}$/.test(header) ? header : null;
}

/** Parses `X-Secrets` (docs/reference/ors.md#secrets). */
export function secretsOf(request: IncomingMessage): Record<string, string> {
  const header = request.headers['x-secrets'];
  if (typeof header !== 'string' || header === '') return {};
  try {
    const secrets = JSON.parse(Buffer.from(header, 'base64').toString('utf8')) as Record<string, { value: string }>;
    return Object.fromEntries(Object.entries(secrets).map(([key, { value }]) => [key, value]));
  } catch (error) {
    throw new PalestraError('secrets_invalid', { cause: error });
  }
}

export function sendJson(response: ServerResponse, value: unknown, status = 200, headers: Record<string, string> = {}): void {
  const body = Buffer.from(JSON.stringify(value));
  response.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': body.length, ...headers }).end(body);
}

/** Sends an error as a response. A started stream is closed instead. */
export function sendError(response: ServerResponse, error: unknown): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const known = error instanceof PalestraError ? error : new PalestraError('internal_error', { cause: error });
  const headers: Record<string, string> = {};
  if (known.retryAfterSeconds !== undefined) headers['Retry-After'] = String(known.retryAfterSeconds);
  if (known.backendStarting) headers['X-Backend-State'] = 'starting';
  if (known.code === 'body_too_large') headers['Connection'] = 'close';
  sendJson(response, { detail: known.detail }, known.status, headers);
}
