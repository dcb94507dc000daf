export { OpenEnvBackend } from './openenv-backend.ts';
