export * from './local/index.ts';
export * from './ors/index.ts';
