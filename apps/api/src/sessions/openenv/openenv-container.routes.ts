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
 * Virtual containers for clients up to 0.1, whose HTTP is stateful (docs/reference/openenv.md#stateful-http). `/container/{id}` behaves as
 * a server with one environment; the client chooses the id. The first `reset` opens the episode for this API key and id, `DELETE` ends it.
 */
export function addContainerRoutes(server: OpenEnvServer, { routing }: ProtocolContext, add: AddRoute): void {
  const isRoutedElsewhere = (context: RequestContext, id: string, request: FastifyRequest, reply: FastifyReply) =>
    server.routeToOwner(context, server.containerId(context, id), 'container', (sid) =>
      routing.elsewhere(request, reply, context.caller, sid),
    );
  const play =
    (create: boolean, read: (request: FastifyRequest) => OpenEnvMessage) =>
    async (context: RequestContext, request: FastifyRequest, reply: FastifyReply): Promise<string | null> => {
      const { id } = request.params as { id: string };
      const message = read(request);
      if (await isRoutedElsewhere(context, id, request, reply)) return null;
      if (create && reply.raw.closed) throw new PalestraError('call_abandoned');
      const connection = server.container(context, id, create);
      if (create) reply.raw.once('close', () => endIfUnopened(connection, reply));
      return send(connection, message);
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
    if (await isRoutedElsewhere(context, id, request, reply)) return null;
    const connection = server.container(context, id, false);
    connection?.end();
    await connection?.sessionClosed;
    return '{"closed":true}';
  });
}

/**
 * Ends an episode that is not open yet when its client disconnects, so that its place in the queue is free. Keeps it if the client asked
 * again.
 */
function endIfUnopened(connection: ClientConnection | null, reply: FastifyReply): void {
  if (!reply.raw.writableFinished && connection?.isBusy && !connection.episode.isOpen && connection.backlog === 0) connection.end();
}

async function send(connection: ClientConnection | null, message: OpenEnvMessage): Promise<string> {
  if (connection === null || (message.type !== 'reset' && !connection.episode.isOpen && !connection.isBusy)) {
    throw new PalestraError('session_not_found', { detail: 'The episode has not begun: send a reset first.' });
  }
  try {
    const result = await connection.send(message);
    if (result instanceof OpenEnvError) throw result;
    return containerBodyOf(connection, result);
  } catch (error) {
    const isInvalidAction = error instanceof OpenEnvError && error.code === 'VALIDATION_ERROR';
    // SkyRL's trainer drops a rollout on any other status. An invalid action changes nothing and has no reward.
    if (isInvalidAction && connection.lastObservation !== null) return connection.lastObservation;
    throw httpError(error);
  }
}
