export * from './openenv-backend.ts';
