import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import type { IncomingMessage } from 'node:http';
import type { Logger } from 'pino';
import { PalestraError } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { Authenticator } from '../../accounts/authenticator.ts';
import { Sockets } from '../../platform/http/sockets.ts';
import { LOGGER } from '../../platform/tokens.ts';
import { assertOwnOrigin } from '../http/own-origin.ts';
import { SessionEvents } from '../events/session-events.service.ts';
import { type EventPosition, parsePosition } from '../events/session-event-cursor.ts';
import { SessionServer } from '../server/session-server.ts';
import { SessionService } from '../management/session.service.ts';
import { SessionConnection } from './session-connection.ts';

interface Accepted {
  caller: Caller;
  sid: string;
  from: EventPosition;
}

/** `/v1/sessions/{sid}/socket`: plays and follows a session over one socket, on the process that serves it (docs/sessions.md). */
@Injectable()
export class SessionSocket implements OnModuleInit {
  constructor(
    @Inject(SessionService) private readonly sessions: SessionService,
    @Inject(SessionEvents) private readonly events: SessionEvents,
    @Inject(SessionServer) private readonly server: SessionServer,
    @Inject(Sockets) private readonly sockets: Sockets,
    @Inject(Authenticator) private readonly authenticator: Authenticator,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  onModuleInit(): void {
    const { sessions, events, server, logger } = this;
    this.sockets.add({
      pattern: /^\/v1\/sessions\/(?<sid>[^/]+)\/socket$/,
      accept: async ({ raw, path, query, params }, socket, head) => {
        const caller = await this.#callerOf(raw);
        const sid = await sessions.requireSid(caller, params['sid']!);
        const upgrade = { raw, path: `${path}?${query.toString()}`, socket, head };
        if (await server.routing.upgradeElsewhere(upgrade, caller, sid)) return { isForwarded: true };
        const from = parsePosition(query.get('after') ?? undefined) ?? (await events.now(sid));
        return { isForwarded: false, context: { caller, sid, from } satisfies Accepted, caller };
      },
      open: (socket, { raw }, accepted) => {
        const { caller, sid, from } = accepted as Accepted;
        void new SessionConnection(socket, {
          sid,
          from,
          engine: server.engine,
          events,
          view: () => sessions.get(caller, sid),
          authorise: () => this.#callerOf(raw),
          onUnexpected: (error) => logger.error({ err: error, sid }, 'a message of a session socket failed'),
        });
      },
    });
  }

  /** Authenticates as for a POST, so that a page of another site cannot open a socket with the cookie of its reader, or where no key is needed. */
  async #callerOf(raw: IncomingMessage): Promise<Caller> {
    const { headers } = raw;
    const caller = await this.authenticator.authenticate({ headers, method: 'POST', raw });
    if (caller === null) throw new PalestraError('unauthorized');
    if (caller.anonymous) assertOwnOrigin({ headers }, caller);
    this.authenticator.requireScope(caller, 'sessions');
    return caller;
  }
}
