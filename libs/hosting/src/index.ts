export { LocalBackend } from './local/local-backend.ts';
export * from './process/free-port.ts';
export * from './process/supervised-process.ts';
export * from './remote/health.ts';
