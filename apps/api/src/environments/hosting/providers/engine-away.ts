import { HostingError } from '@palestra/hosting';

/** The engine does not answer, or this machine has none. The reconciler stores it, and pages and commands show it. */
export const isEngineAway = (error: unknown): boolean => error instanceof HostingError && error.code === 'engine_unavailable';
