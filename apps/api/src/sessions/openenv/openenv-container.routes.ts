import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  containerBodyOf,
  httpError,
  type OpenEnvServer,
  OpenEnvError,
  type OpenEnvMessage,
  readResetBody,
  readStepBody,
  type ClientConnection,
  type RequestContext,
} from '@palestra/openenv/server';
import { PalestraError, parseBody } from '@palestra/protocol';
import type { ProtocolContext } from '../http/protocol.ts';
import { type AddRoute, bodyOfRequest } from './openenv.handlers.ts';

/**
 * Virtual containers for clients up to 0.1, to whom HTTP is stateful (openenv-wire.md 7.2): `/container/{id}` with an id of the client's own
 * choice behaves as a server with one environment. The first `reset` opens it, for this API key and this id; `DELETE` ends it.
 */
export function addContainerRoutes(server: OpenEnvServer, { routing }: ProtocolContext, add: AddRoute): void {
  const isElsewhere = (context: RequestContext, id: string, request: FastifyRequest, reply: FastifyReply) =>
    server.place(context, server.containerId(context, id), 'container', (sid) => routing.elsewhere(request, reply, context.caller, sid));
  const play =
    (make: boolean, read: (request: FastifyRequest) => OpenEnvMessage) =>
    async (context: RequestContext, request: FastifyRequest, reply: FastifyReply): Promise<string | null> => {
      const { id } = request.params as { id: string };
      const message = read(request);
      if (await isElsewhere(context, id, request, reply)) return null;
      if (make && reply.raw.closed) throw new PalestraError('call_abandoned');
      const connection = server.container(context, id, make);
      if (make) reply.raw.once('close', () => giveUp(connection, reply));
      return ask(connection, message);
    };
  add('GET', '/container/:id/health', async () => '{"status":"healthy"}');
  add(
    'POST',
    '/container/:id/reset',
    play(true, (request) => ({ type: 'reset', data: readResetBody(parseBody(bodyOfRequest(request))) })),
  );
  add(
    'POST',
    '/container/:id/step',
    play(false, (request) => ({ type: 'step', data: readStepBody(parseBody(bodyOfRequest(request))) })),
  );
  add(
    'GET',
    '/container/:id/state',
    play(false, () => ({ type: 'state' })),
  );
  add('DELETE', '/container/:id', async (context, request, reply) => {
    const { id } = request.params as { id: string };
    if (await isElsewhere(context, id, request, reply)) return null;
    const connection = server.container(context, id, false);
    connection?.end();
    await connection?.sessionClosed;
    return '{"closed":true}';
  });
}

/** Whoever left before its episode was open has no use for it: its place in the queue is another's. One that asked again meanwhile still waits. */
function giveUp(connection: ClientConnection | null, reply: FastifyReply): void {
  if (!reply.raw.writableFinished && connection?.isBusy && !connection.episode.isOpen && connection.backlog === 0) connection.end();
}

async function ask(connection: ClientConnection | null, message: OpenEnvMessage): Promise<string> {
  if (connection === null || (message.type !== 'reset' && !connection.episode.isOpen && !connection.isBusy)) {
    throw new PalestraError('session_not_found', { detail: 'The episode has not begun: send a reset first.' });
  }
  try {
    const result = await connection.ask(message);
    if (result instanceof OpenEnvError) throw result;
    return containerBodyOf(connection, result);
  } catch (error) {
    const mistaken = error instanceof OpenEnvError && error.code === 'VALIDATION_ERROR';
    // A trainer gives up a rollout at any other status: what was only a bad action changes nothing and is not rewarded.
    if (mistaken && connection.lastObservation !== null) return connection.lastObservation;
    throw httpError(error);
  }
}
