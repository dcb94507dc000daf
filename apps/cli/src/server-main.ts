import { createRequire } from 'node:module';

/** The entry file of the service. Throws if it is not built. */
export const serverMain = (): string => createRequire(import.meta.url).resolve('@palestra/api/main');
