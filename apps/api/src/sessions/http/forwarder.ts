import { once } from 'node:events';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Agent } from 'undici';
import { type JsonValue, parseJson, stringifyJson } from '@palestra/protocol';
import { onDelivery } from './delivery.ts';

/** Marks a request that another process of this service has forwarded. It is not forwarded again. */
export const FORWARDED = 'x-palestra-forwarded';
/** On the answer to a forwarded call: its task id, for the process that holds the client's connection. */
export const CALL_HEADER = 'x-palestra-call';
/** On an answer: the session is no longer here, and nothing was done. */
export const MOVED_HEADER = 'x-palestra-moved';

const HOP_BY_HOP = new Set(['connection', 'keep-alive', 'transfer-encoding', 'upgrade', 'proxy-connection', 'te', 'trailer', 'expect']);
/** Shorter than our own servers keep idle connections. */
const KEEP_ALIVE_MS = 30_000;
/** The headers of an upgrade that identify its client. */
const CREDENTIALS = ['x-api-key', 'authorization', 'cookie', 'origin', 'sec-fetch-site', 'host'];

/** Result of a forwarded request. Unless it was answered, it is sent again: its session moved, or its owner did not answer. */
export type Forwarding = 'answered' | 'moved' | 'unanswered';

export interface PeerRequest {
  method: 'GET' | 'POST' | 'DELETE';
  path: string;
  body: JsonValue;
}

export interface PeerAnswer {
  status: number;
  body: JsonValue;
}

/** The one HTTP client for requests that another process serves: it sends them on, with the client's credentials, in one hop (ADR 8). */
export class Forwarder {
  /** Without a limit of connections, so that no request waits for the long calls of others. Each is a request that a client made here. */
  readonly #agent = new Agent({
    pipelining: 1,
    keepAliveTimeout: KEEP_ALIVE_MS,
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { timeout: 2_000 },
  });

  constructor(
    readonly replicaId: string,
    /** Called when the client of a forwarded call did not receive the end of the answer. */
    readonly onUndelivered: (taskId: string) => void,
  ) {}

  async pass(request: FastifyRequest, reply: FastifyReply, address: string): Promise<Forwarding> {
    const disconnected = new AbortController();
    const onClose = () => {
      if (!reply.raw.writableFinished) disconnected.abort();
    };
    reply.raw.once('close', onClose);
    let answer;
    try {
      answer = await this.#agent.request({
        origin: address,
        path: request.raw.url ?? '/',
        method: request.method as 'GET',
        headers: { ...this.#headers(request) },
        body: bodyOf(request),
        signal: disconnected.signal,
      });
    } catch {
      reply.raw.off('close', onClose);
      if (!disconnected.signal.aborted) return 'unanswered';
      reply.hijack();
      return 'answered';
    }
    if (answer.headers[MOVED_HEADER] !== undefined) {
      reply.raw.off('close', onClose);
      await answer.body.dump();
      return 'moved';
    }
    const { [CALL_HEADER]: taskId, ...headers } = answer.headers;
    if (typeof taskId === 'string') onDelivery(request, reply, (delivery) => delivery === 'undelivered' && this.onUndelivered(taskId));
    reply.hijack();
    reply.raw.on('error', () => {});
    reply.raw.writeHead(
      answer.statusCode,
      Object.fromEntries(Object.entries(headers).filter(([name]) => !HOP_BY_HOP.has(name))) as Record<string, string>,
    );
    // The client must see that a stream is open before its first chunk.
    reply.raw.flushHeaders();
    answer.body.on('error', () => reply.raw.destroy());
    answer.body.pipe(reply.raw);
    // The client left before the request was sent, so nothing aborts it.
    if (reply.raw.closed) answer.body.destroy();
    return 'answered';
  }

  /** Sends a request for which no client waits on a request of its own. */
  async ask(
    address: string,
    credentials: IncomingHttpHeaders,
    { method, path, body }: PeerRequest,
  ): Promise<PeerAnswer | 'moved' | 'unanswered'> {
    const headers = Object.fromEntries(
      CREDENTIALS.filter((name) => credentials[name] !== undefined).map((name) => [name, String(credentials[name])]),
    );
    try {
      const answer = await this.#agent.request({
        origin: address,
        path,
        method,
        headers: { ...headers, [FORWARDED]: this.replicaId, ...(body !== null && { 'content-type': 'application/json' }) },
        body: body === null ? null : stringifyJson(body),
      });
      const text = await answer.body.text();
      return answer.headers[MOVED_HEADER] === undefined ? { status: answer.statusCode, body: parseJson(text) } : 'moved';
    } catch {
      return 'unanswered';
    }
  }

  /** Connects the client's socket with the other process. False when that does not answer; then nothing was sent to the client. */
  async passUpgrade(raw: IncomingMessage, path: string, socket: Duplex, head: Buffer, address: string): Promise<boolean> {
    const { protocol, hostname, port } = new URL(address);
    const secure = protocol === 'https:';
    const target = { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) || (secure ? 443 : 80), timeout: 2_000 };
    const upstream = secure ? connectTls({ ...target, servername: hostname }) : connect(target);
    try {
      await once(upstream, secure ? 'secureConnect' : 'connect', { signal: AbortSignal.timeout(2_000) });
    } catch {
      upstream.destroy();
      return false;
    }
    upstream.setTimeout(0);
    const headers = { ...raw.headers, [FORWARDED]: this.replicaId };
    const lines = Object.entries(headers).flatMap(([name, value]) => [value ?? []].flat().map((one) => `${name}: ${one}`));
    upstream.write(`GET ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
    if (head.length > 0) upstream.write(head);
    const end = () => {
      upstream.destroy();
      socket.destroy();
    };
    for (const one of [upstream, socket]) one.on('error', end).on('close', end);
    upstream.pipe(socket).pipe(upstream);
    return true;
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  #headers(request: FastifyRequest): Record<string, string> {
    const headers: Record<string, string> = { [FORWARDED]: this.replicaId };
    for (const [name, value] of Object.entries(request.headers)) {
      if (HOP_BY_HOP.has(name) || name === 'content-length' || name === 'content-encoding' || value === undefined) continue;
      headers[name] = Array.isArray(value) ? value.join(', ') : value;
    }
    return headers;
  }
}

function bodyOf(request: FastifyRequest): Buffer | string | null {
  if (request.body === undefined || request.body === null) return null;
  if (Buffer.isBuffer(request.body)) return request.body;
  return JSON.stringify(request.body);
}
