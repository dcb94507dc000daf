import type { IncomingHttpHeaders } from 'node:http';
import { Agent } from 'undici';
import { type JsonValue, parseJson, PalestraError, stringifyJson } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { FORWARDED, MOVED_HEADER } from '../forwarder.ts';
import type { SessionPlane } from '../session-plane.ts';

const ATTEMPTS = 5;
/** What tells who asks. */
const CREDENTIALS = ['x-api-key', 'authorization', 'cookie', 'origin', 'sec-fetch-site', 'host'];

export interface PeerRequest {
  method: 'GET' | 'POST' | 'DELETE';
  path: string;
  body: JsonValue;
}

/**
 * One socket carries sessions of many processes: what concerns a session of another one is asked there, over HTTP, with the credentials that
 * the socket was opened with.
 */
export class TextPeers {
  readonly #agent = new Agent({ connections: 256, pipelining: 1, headersTimeout: 0, bodyTimeout: 0, connect: { timeout: 2_000 } });

  constructor(readonly plane: SessionPlane) {}

  /** null: the session is to be served here. */
  async ask(
    caller: Caller,
    headers: IncomingHttpHeaders,
    sid: string,
    request: PeerRequest,
  ): Promise<{ status: number; body: JsonValue } | null> {
    const { engine, leases } = this.plane;
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const place = await engine.place(caller, sid);
      if (place.here) return null;
      const answer = await this.#send(place.address, headers, request);
      if (answer !== null) return answer;
      // A silent owner is dead once its lease has ended.
      await leases.confirm(place.replicaId);
      await engine.relocate(caller, sid);
    }
    throw new PalestraError('session_moved', { retryAfterSeconds: 1 });
  }

  /** null: not answered, or the session is not there any more. */
  async #send(address: string, headers: IncomingHttpHeaders, { method, path, body }: PeerRequest) {
    const credentials = Object.fromEntries(
      CREDENTIALS.filter((name) => headers[name] !== undefined).map((name) => [name, String(headers[name])]),
    );
    try {
      const answer = await this.#agent.request({
        origin: address,
        path,
        method,
        headers: { ...credentials, [FORWARDED]: this.plane.replicaId, ...(body !== null && { 'content-type': 'application/json' }) },
        body: body === null ? null : stringifyJson(body),
      });
      const text = await answer.body.text();
      return answer.headers[MOVED_HEADER] === undefined ? { status: answer.statusCode, body: parseJson(text) } : null;
    } catch {
      return null;
    }
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }
}
