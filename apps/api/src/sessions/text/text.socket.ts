import { Inject, Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import type { Logger } from 'pino';
import { PalestraError } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { Authenticator } from '../../accounts/authenticator.ts';
import { Sockets } from '../../platform/http/sockets.ts';
import { LOGGER } from '../../platform/tokens.ts';
import { SessionPlane } from '../session-plane.ts';
import { TextConnection } from './text-connection.ts';
import { TextPeers } from './text-peers.ts';
import { TextService } from './text.service.ts';

/** `/v1/text-sessions/ws`: the text sessions of one client over one socket (docs/text.md). */
@Injectable()
export class TextSocket implements OnModuleInit, OnApplicationShutdown {
  readonly #peers: TextPeers;

  constructor(
    @Inject(TextService) private readonly texts: TextService,
    @Inject(SessionPlane) private readonly plane: SessionPlane,
    @Inject(Sockets) private readonly sockets: Sockets,
    @Inject(Authenticator) private readonly authenticator: Authenticator,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    this.#peers = new TextPeers(plane);
  }

  onModuleInit(): void {
    const { texts, plane, authenticator, logger } = this;
    this.sockets.add({
      pattern: /^\/v1\/text-sessions\/ws$/,
      accept: async ({ raw }) => {
        const caller = await authenticator.authenticate({ headers: raw.headers, method: 'POST', raw });
        if (caller === null) throw new PalestraError('unauthorized');
        authenticator.requireScope(caller, 'sessions');
        return { elsewhere: false, context: caller, caller };
      },
      open: (socket, { raw }, caller) => {
        const onUnexpected = (error: unknown) => logger.error({ err: error }, 'a request of a text socket failed');
        void new TextConnection(socket, { texts, plane, peers: this.#peers, caller: caller as Caller, headers: raw.headers, onUnexpected });
      },
    });
  }

  async onApplicationShutdown(): Promise<void> {
    await this.#peers.close();
  }
}
