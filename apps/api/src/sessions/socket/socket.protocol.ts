import type { Protocol } from '../http/protocol.ts';
import { SessionSocket } from './session.socket.ts';

/** The socket on which pages play and follow a session (docs/sessions.md). */
export const socketProtocol: Protocol = { providers: [SessionSocket] };
