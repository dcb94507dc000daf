export * from './local/index.ts';
export * from './mcp/index.ts';
export * from './openenv/index.ts';
export * from './ors/index.ts';
export * from './outbound/index.ts';
export * from './tasks/index.ts';
