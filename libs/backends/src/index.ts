export * from './mcp/index.ts';
export * from './openenv/index.ts';
export * from './ors/index.ts';
