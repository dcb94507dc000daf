import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { PalestraError } from '@palestra/protocol';
import type { Caller, ReplicaLeases, SessionEngine } from '@palestra/session';
import { FORWARDED, type Forwarder, MOVED_HEADER } from './forwarder.ts';

/** Owners may change while we ask; more often than this they do not. */
const ATTEMPTS = 5;

/** Brings each request of a session to the process that serves it. */
export class SessionRouting {
  constructor(
    readonly engine: SessionEngine,
    readonly leases: ReplicaLeases,
    readonly forwarder: Forwarder,
  ) {}

  /** True when the request has been answered by another process; false when it is to be served here. */
  async elsewhere(request: FastifyRequest, reply: FastifyReply, caller: Caller, sid: string): Promise<boolean> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const place = await this.engine.place(caller, sid);
      if (place.here) return false;
      if (request.headers[FORWARDED] !== undefined) {
        void reply.header(MOVED_HEADER, '1');
        throw new PalestraError('session_moved', { retryAfterSeconds: 1 });
      }
      const how = await this.forwarder.pass(request, reply, place.address);
      if (how === 'answered') return true;
      // A silent owner is dead once its lease has ended; a living one has noted by its answer what it began for us.
      if (how === 'unanswered') await this.leases.confirm(place.replicaId);
      await this.engine.relocate(caller, sid);
    }
    throw new PalestraError('session_moved', { retryAfterSeconds: 1 });
  }

  /** As `elsewhere`, for an upgrade: true when another process has the socket now. `path`: as it is to be asked there. */
  async upgradeElsewhere(
    upgrade: { raw: IncomingMessage; path: string; socket: Duplex; head: Buffer },
    caller: Caller,
    sid: string,
  ): Promise<boolean> {
    const { raw, path, socket, head } = upgrade;
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const place = await this.engine.place(caller, sid);
      if (place.here) return false;
      if (raw.headers[FORWARDED] !== undefined) break;
      if (await this.forwarder.passUpgrade(raw, path, socket, head, place.address)) return true;
      await this.leases.confirm(place.replicaId);
      await this.engine.relocate(caller, sid);
    }
    throw new PalestraError('session_moved', { retryAfterSeconds: 1 });
  }
}
