export * from './mcp-backend.ts';
