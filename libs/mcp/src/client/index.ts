export { McpBackend, type McpBackendOptions } from './mcp-backend.ts';
export type { McpServer } from './mcp-connection.ts';
