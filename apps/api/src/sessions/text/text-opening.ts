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
  /** Bytes, so that the numbers of a task keep their spelling. */
  body: Buffer | undefined;
  request: FastifyRequest;
  reply: FastifyReply;
  texts: TextService;
  server: SessionServer;
}

/** Validates what a session is opened with. Throws `invalid_body`. */
export function readOpenText(asked: unknown): OpenText {
  return new SchemaPipe().transform(asked, { type: 'body', schema: openTextSchema } as never) as OpenText;
}

/** Answers `POST /v1/text-sessions`: here, or where the session's slot turns out to be. */
export async function openTextHere({ caller, body, request, reply, texts, server }: Opening): Promise<void> {
  const asked = parseBody(body ?? null) ?? {};
  const wanted = readOpenText(asked);
  const id = wanted.id ?? newTextId();
  const sid = wanted.id === undefined ? id : await server.engine.sidOf(caller, id);
  // Whoever passes it on to another process names the session, which is reserved by then.
  request.body = Buffer.from(stringifyJson({ ...(asked as object), id }));
  if (wanted.id !== undefined && (await server.routing.elsewhere(request, reply, caller, id))) return;
  const gone = new AbortController();
  countRequest(request);
  onDelivery(request, reply, (how) => {
    if (how !== 'undelivered') return;
    // One that did not read the answer and sends the request again is to get its session.
    gone.abort(new PalestraError('call_abandoned'));
    void server.engine.markCreateUndelivered(sid);
  });
  try {
    const opened = await texts.openAs(caller, sid, wanted, gone.signal);
    await reply.type('application/json; charset=utf-8').send(stringifyJson({ ...opened, id }));
  } catch (error) {
    const moved = error instanceof PalestraError && error.code === 'session_moved';
    if (!moved || !(await server.routing.elsewhere(request, reply, caller, id))) throw error;
  }
}
