export { CallEvents, cursorOf, freshCursor } from './call-events.ts';
export type { McpCall } from './running-calls.ts';
export { McpServer } from './mcp-server.ts';
export { rpcErrorOf } from './rpc-error.ts';
