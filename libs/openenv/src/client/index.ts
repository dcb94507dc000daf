export { forwardedSession, forwardedUpstream } from './forwarded-upstream.ts';
export { OpenEnvBackend } from './openenv-backend.ts';
