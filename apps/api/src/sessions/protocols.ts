import type { Protocol } from './http/protocol.ts';
import { mcpProtocol } from './mcp/mcp.protocol.ts';
import { nemoGymProtocol } from './nemo-gym/nemo-gym.protocol.ts';
import { openEnvProtocol } from './openenv/openenv.protocol.ts';
import { orsProtocol } from './ors/ors.protocol.ts';
import { socketProtocol } from './socket/socket.protocol.ts';
import { textProtocol } from './text/text.protocol.ts';

/** Every protocol of clients. To remove one, delete its line, its folder here and its library. */
export const protocols: readonly Protocol[] = [orsProtocol, openEnvProtocol, mcpProtocol, nemoGymProtocol, textProtocol, socketProtocol];
