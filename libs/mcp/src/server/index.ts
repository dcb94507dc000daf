export { type CallCursor, CallEvents, cursorOf, freshCursor } from './call-events.ts';
export type { McpCall } from './calls.ts';
export { McpDialect, type McpEpisode, type McpGreeting } from './dialect.ts';
export { rpcErrorOf } from './rpc-error.ts';
