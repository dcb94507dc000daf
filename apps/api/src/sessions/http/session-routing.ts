import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { PalestraError } from '@palestra/protocol';
import type { Caller, ReplicaLeases, SessionEngine } from '@palestra/session';
import { FORWARDED, type Forwarder, type Forwarding, MOVED_HEADER, type PeerAnswer, type PeerRequest } from './forwarder.ts';

/** The owner of a session may change between its lookup and the request. We look it up again this often before we give up. */
const ATTEMPTS = 5;

/** Brings each request of a session to the process that serves it. All methods throw `session_moved` when the owner keeps changing. */
export class SessionRouting {
  constructor(
    readonly engine: SessionEngine,
    readonly leases: ReplicaLeases,
    readonly forwarder: Forwarder,
  ) {}

  /** True when another process has answered the request; false when this process serves the session. */
  async elsewhere(request: FastifyRequest, reply: FastifyReply, caller: Caller, sid: string): Promise<boolean> {
    const outcome = await this.#atOwner(caller, sid, (address) => {
      if (request.headers[FORWARDED] !== undefined) {
        void reply.header(MOVED_HEADER, '1');
        throw sessionMoved();
      }
      return this.forwarder.pass(request, reply, address);
    });
    return outcome !== 'here';
  }

  /** As `elsewhere`, for an upgrade: true when another process has the socket. `path`: the path at that process. */
  async upgradeElsewhere(
    upgrade: { raw: IncomingMessage; path: string; socket: Duplex; head: Buffer },
    caller: Caller,
    sid: string,
  ): Promise<boolean> {
    const { raw, path, socket, head } = upgrade;
    const outcome = await this.#atOwner(caller, sid, async (address) => {
      if (raw.headers[FORWARDED] !== undefined) throw sessionMoved();
      return (await this.forwarder.passUpgrade(raw, path, socket, head, address)) ? 'answered' : 'unanswered';
    });
    return outcome !== 'here';
  }

  /**
   * Sends a request of a socket, which carries sessions of several processes, to the process that serves the session. Returns null when
   * this process serves it. `headers`: of the upgrade, for its credentials.
   */
  async askElsewhere(caller: Caller, headers: IncomingHttpHeaders, sid: string, request: PeerRequest): Promise<PeerAnswer | null> {
    const outcome = await this.#atOwner(caller, sid, (address) => this.forwarder.ask(address, headers, request));
    return outcome === 'here' ? null : outcome;
  }

  /** Calls `send` with the address of the session's owner until it answers. Returns its answer, or `here` if this process is the owner. */
  async #atOwner<Answer extends 'answered' | PeerAnswer>(
    caller: Caller,
    sid: string,
    send: (address: string) => Promise<Answer | Exclude<Forwarding, 'answered'>>,
  ): Promise<Answer | 'here'> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const location = await this.engine.locate(caller, sid);
      if (location.here) return 'here';
      const answer = await send(location.address);
      if (answer !== 'moved' && answer !== 'unanswered') return answer as Answer;
      // An owner that does not answer is dead when its lease has ended. If it lives, it has stored what it began for us when this returns.
      if (answer === 'unanswered') await this.leases.confirm(location.replicaId);
      await this.engine.refreshLocation(caller, sid);
    }
    throw sessionMoved();
  }
}

const sessionMoved = (): PalestraError => new PalestraError('session_moved', { retryAfterSeconds: 1 });
