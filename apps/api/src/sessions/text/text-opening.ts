import { openTextSchema } from '@palestra/protocol/schemas';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type OpenText, PalestraError, parseBody, stringifyJson } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { SchemaPipe } from '../../platform/http/schema.pipe.ts';
import { countRequest, onDelivery } from '../http/delivery.ts';
import type { SessionServer } from '../server/session-server.ts';
import { newTextId, type TextService } from './text.service.ts';

interface Opening {
  caller: Caller;
  /** Bytes, because the numbers of a task must keep their spelling. */
  body: Buffer | undefined;
  request: FastifyRequest;
  reply: FastifyReply;
  texts: TextService;
  server: SessionServer;
}

/** Validates the request to open a text session. Throws `invalid_body`. */
export function readOpenText(json: unknown): OpenText {
  return new SchemaPipe().transform(json, { type: 'body', schema: openTextSchema } as never) as OpenText;
}

/** Answers `POST /v1/text-sessions`. If the slot of the session is on another process, that process opens it. */
export async function openTextSession({ caller, body, request, reply, texts, server }: Opening): Promise<void> {
  const json = parseBody(body ?? null) ?? {};
  const options = readOpenText(json);
  const id = options.id ?? newTextId();
  const sid = options.id === undefined ? id : await server.engine.sidOf(caller, id);
  // A forwarded request must name the session, because it is reserved by then.
  request.body = Buffer.from(stringifyJson({ ...(json as object), id }));
  if (options.id !== undefined && (await server.routing.elsewhere(request, reply, caller, id))) return;
  const disconnected = new AbortController();
  countRequest(request);
  onDelivery(request, reply, (delivery) => {
    if (delivery !== 'undelivered') return;
    // A client that did not receive the answer repeats the request and must get its session.
    disconnected.abort(new PalestraError('call_abandoned'));
    void server.engine.markCreateUndelivered(sid);
  });
  try {
    const opened = await texts.openAs(caller, sid, options, disconnected.signal);
    await reply.type('application/json; charset=utf-8').send(stringifyJson({ ...opened, id }));
  } catch (error) {
    const moved = error instanceof PalestraError && error.code === 'session_moved';
    if (!moved || !(await server.routing.elsewhere(request, reply, caller, id))) throw error;
  }
}
