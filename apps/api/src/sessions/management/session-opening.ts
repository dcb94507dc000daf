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
  /** Bytes, so that the numbers of a task keep their spelling. */
  body: Buffer | undefined;
  request: FastifyRequest;
  reply: FastifyReply;
  sessions: SessionService;
  server: SessionServer;
}

/** Answers `POST /v1/sessions`: here, or where the session's slot turns out to be. */
export async function openHere({ caller, body, request, reply, sessions, server }: Opening): Promise<void> {
  const asked = parseBody(body ?? null) ?? {};
  const wanted = new SchemaPipe().transform(asked, { type: 'body', schema: openSessionSchema } as never) as OpenSession;
  const chosen = wanted.sid ?? newUuid();
  const sid = wanted.sid === undefined ? chosen : await server.engine.sidOf(caller, chosen);
  // Whoever passes it on to another process names the session, which is reserved by then.
  request.body = Buffer.from(stringifyJson({ ...(asked as object), sid: chosen }));
  if (wanted.sid !== undefined && (await server.routing.elsewhere(request, reply, caller, sid))) return;
  const signal = leaving(request, reply, sid, server);
  try {
    await sessions.open(caller, { ...wanted, sid }, signal);
    await reply.type('application/json; charset=utf-8').send(stringifyJson(await sessions.get(caller, sid)));
  } catch (error) {
    const moved = error instanceof PalestraError && error.code === 'session_moved';
    if (!moved || !(await server.routing.elsewhere(request, reply, caller, sid))) throw error;
  }
}

/** Aborts when the client has left. One that did not read the answer and sends the request again is to get its session. */
function leaving(request: FastifyRequest, reply: FastifyReply, sid: string, server: SessionServer): AbortSignal {
  const gone = new AbortController();
  countRequest(request);
  onDelivery(request, reply, (how) => {
    if (how !== 'undelivered') return;
    gone.abort(new PalestraError('call_abandoned'));
    void server.engine.markCreateUndelivered(sid);
  });
  return gone.signal;
}
