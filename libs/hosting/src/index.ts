export * from './process/supervised-process.ts';
export * from './remote/health.ts';
