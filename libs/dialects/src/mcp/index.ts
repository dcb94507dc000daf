export { McpDialect, type McpCall, type McpEpisode, type McpGreeting } from './dialect.ts';
export { rpcErrorOf } from './rpc-error.ts';
