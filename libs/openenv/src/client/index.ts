export { OpenEnvBackend, type OpenEnvBackendOptions } from './openenv-backend.ts';
