export { CallEvents, cursorOf, freshCursor } from './call-events.ts';
export type { McpCall } from './calls.ts';
export { McpDialect } from './dialect.ts';
export { rpcErrorOf } from './rpc-error.ts';
