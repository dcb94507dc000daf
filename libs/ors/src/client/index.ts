export { OrsBackend, type OrsServerKind } from './ors-backend.ts';
export type { OrsConnectionOptions } from './connection.ts';
