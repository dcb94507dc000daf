import { openSessionSchema } from '@palestra/protocol/schemas';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { newUuid } from '@palestra/kit';
import { type OpenSession, PalestraError, parseBody, stringifyJson } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { SchemaPipe } from '../../platform/http/schema.pipe.ts';
import { countRequest, onDelivery } from '../http/delivery.ts';
import type { SessionServer } from '../server/session-server.ts';
import type { SessionService } from './session.service.ts';

interface Opening {
  caller: Caller;
  /** Bytes, because the numbers of a task must keep their spelling. */
  body: Buffer | undefined;
  request: FastifyRequest;
  reply: FastifyReply;
  sessions: SessionService;
  server: SessionServer;
}

/** Answers `POST /v1/sessions`. If the slot of the session is on another process, that process opens it. */
export async function openSession({ caller, body, request, reply, sessions, server }: Opening): Promise<void> {
  const json = parseBody(body ?? null) ?? {};
  const options = new SchemaPipe().transform(json, { type: 'body', schema: openSessionSchema } as never) as OpenSession;
  const id = options.sid ?? newUuid();
  const sid = options.sid === undefined ? id : await server.engine.sidOf(caller, id);
  // A forwarded request must name the session, because it is reserved by then.
  request.body = Buffer.from(stringifyJson({ ...(json as object), sid: id }));
  if (options.sid !== undefined && (await server.routing.elsewhere(request, reply, caller, sid))) return;
  const signal = abortOnDisconnect(request, reply, sid, server);
  try {
    await sessions.open(caller, { ...options, sid }, signal);
    await reply.type('application/json; charset=utf-8').send(stringifyJson(await sessions.get(caller, sid)));
  } catch (error) {
    const moved = error instanceof PalestraError && error.code === 'session_moved';
    if (!moved || !(await server.routing.elsewhere(request, reply, caller, sid))) throw error;
  }
}

/** Aborts when the client does not receive the answer. The session is then marked, so that a repeat of the request gets it. */
function abortOnDisconnect(request: FastifyRequest, reply: FastifyReply, sid: string, server: SessionServer): AbortSignal {
  const disconnected = new AbortController();
  countRequest(request);
  onDelivery(request, reply, (delivery) => {
    if (delivery !== 'undelivered') return;
    disconnected.abort(new PalestraError('call_abandoned'));
    void server.engine.markCreateUndelivered(sid);
  });
  return disconnected.signal;
}
