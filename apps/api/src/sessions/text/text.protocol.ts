import type { Protocol } from '../http/protocol.ts';
import { TextController } from './text.controller.ts';
import { TextService } from './text.service.ts';
import { TextSocket } from './text.socket.ts';

/** Sessions in which clients send the texts of a model (docs/text.md). */
export const textProtocol: Protocol = { controllers: [TextController], providers: [TextService, TextSocket] };
