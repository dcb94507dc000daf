import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import type { Logger } from 'pino';
import { PalestraError } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { Authenticator } from '../../accounts/authenticator.ts';
import { Sockets } from '../../platform/http/sockets.ts';
import { LOGGER } from '../../platform/tokens.ts';
import { SessionServer } from '../server/session-server.ts';
import { TextConnection } from './text-connection.ts';
import { TextService } from './text.service.ts';

/** `/v1/text-sessions/ws`: the text sessions of one client over one socket (docs/text.md). */
@Injectable()
export class TextSocket implements OnModuleInit {
  constructor(
    @Inject(TextService) private readonly texts: TextService,
    @Inject(SessionServer) private readonly server: SessionServer,
    @Inject(Sockets) private readonly sockets: Sockets,
    @Inject(Authenticator) private readonly authenticator: Authenticator,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  onModuleInit(): void {
    const { texts, server, authenticator, logger } = this;
    this.sockets.add({
      pattern: /^\/v1\/text-sessions\/ws$/,
      accept: async ({ raw }) => {
        const caller = await authenticator.authenticate({ headers: raw.headers, method: 'POST', raw });
        if (caller === null) throw new PalestraError('unauthorized');
        authenticator.requireScope(caller, 'sessions');
        return { isForwarded: false, context: caller, caller };
      },
      open: (socket, { raw }, caller) => {
        const onUnexpected = (error: unknown) => logger.error({ err: error }, 'a request of a text socket failed');
        void new TextConnection(socket, { texts, server, caller: caller as Caller, headers: raw.headers, onUnexpected });
      },
    });
  }
}
