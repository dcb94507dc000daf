export * from './ors/index.ts';
export * from './openenv/index.ts';
export * from './mcp/index.ts';
export * from './text/index.ts';
