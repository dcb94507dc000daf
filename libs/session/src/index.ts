export * from './backend.port.ts';
export * from './call-ledger.port.ts';
export type { OpenCall } from './call-runner.ts';
export * from './directory.port.ts';
export * from './engine.ts';
export * from './every-task.ts';
export { errorOfOutcome } from './failure.ts';
export * from './session-store.port.ts';
export * from './state.ts';
