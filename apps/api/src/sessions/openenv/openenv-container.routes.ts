import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  containerBodyOf,
  httpError,
  type OpenEnvDialect,
  OpenEnvError,
  readResetBody,
  readStepBody,
  type Seat,
  type Stage,
} from '@palestra/openenv/server';
import { PalestraError, parseBody } from '@palestra/protocol';
import type { OpenEnvMessage } from '@palestra/session';
import type { ProtocolContext } from '../http/protocol.ts';
import { type AddRoute, bodyOfRequest } from './openenv.handlers.ts';

/**
 * Virtual containers for clients up to 0.1, to whom HTTP is stateful (openenv-wire.md 7.2): `/container/{id}` with an id of the client's own
 * choice behaves as a server with one environment. The first `reset` opens it, for this API key and this id; `DELETE` ends it.
 */
export function addContainerRoutes(dialect: OpenEnvDialect, { routing }: ProtocolContext, add: AddRoute): void {
  const isElsewhere = (stage: Stage, id: string, request: FastifyRequest, reply: FastifyReply) =>
    dialect.place(stage, dialect.containerId(stage, id), 'container', (sid) => routing.elsewhere(request, reply, stage.caller, sid));
  const play =
    (make: boolean, read: (request: FastifyRequest) => OpenEnvMessage) =>
    async (stage: Stage, request: FastifyRequest, reply: FastifyReply): Promise<string | null> => {
      const { id } = request.params as { id: string };
      const message = read(request);
      if (await isElsewhere(stage, id, request, reply)) return null;
      if (make && reply.raw.closed) throw new PalestraError('call_abandoned');
      const seat = dialect.container(stage, id, make);
      if (make) reply.raw.once('close', () => giveUp(seat, reply));
      return ask(seat, message);
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
  add('DELETE', '/container/:id', async (stage, request, reply) => {
    const { id } = request.params as { id: string };
    if (await isElsewhere(stage, id, request, reply)) return null;
    const seat = dialect.container(stage, id, false);
    seat?.end();
    await seat?.forgotten;
    return '{"closed":true}';
  });
}

/** Whoever left before its episode was open has no use for it: its place in the queue is another's. One that asked again meanwhile still waits. */
function giveUp(seat: Seat | null, reply: FastifyReply): void {
  if (!reply.raw.writableFinished && seat?.isBusy && !seat.episode.isOpen && seat.backlog === 0) seat.end();
}

async function ask(seat: Seat | null, message: OpenEnvMessage): Promise<string> {
  if (seat === null || (message.type !== 'reset' && !seat.episode.isOpen && !seat.isBusy)) {
    throw new PalestraError('session_not_found', { detail: 'The episode has not begun: send a reset first.' });
  }
  try {
    const result = await seat.ask(message);
    if (result instanceof OpenEnvError) throw result;
    return containerBodyOf(seat, result);
  } catch (error) {
    const mistaken = error instanceof OpenEnvError && error.code === 'VALIDATION_ERROR';
    // A trainer gives up a rollout at any other status: what was only a bad action changes nothing and is not rewarded.
    if (mistaken && seat.lastSeen !== null) return seat.lastSeen;
    throw httpError(error);
  }
}
