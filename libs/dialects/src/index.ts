export * from './ors/index.ts';
