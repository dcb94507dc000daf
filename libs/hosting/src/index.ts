export { LocalBackend } from './local/local-backend.ts';
export { freePort } from './process/free-port.ts';
export { type ReadyMessage, SupervisedProcess } from './process/supervised-process.ts';
export { HealthCheck } from './remote/health.ts';
