export { McpBackend, type McpBackendOptions } from './mcp-backend.ts';
