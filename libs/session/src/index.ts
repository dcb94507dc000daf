export { SessionEngine } from './engine.ts';
export { isDead } from './state.ts';
export type { QueuePosition } from './admission/admission.ts';
export type { CreateRequest } from './admission/session-opener.ts';
export type { OpenCall } from './calls/open-call.ts';
export type { SlotLimits, OpenSessionCount, AdmissionSnapshot, AdmittedSession, AdmissionStore } from './ports/admission-store.port.ts';
export {
  type Backend,
  type EpisodeTask,
  taskOf,
  type BackendCreate,
  type SecretMap,
  type BackendSessionRef,
  type BackendSession,
} from './ports/backend.port.ts';
export { type BackendCall, type CallProgress, type ToolCallResult, ToolFailedError } from './ports/backend-call.ts';
export type {
  CallIntent,
  BeginAnswer,
  CallOutcome,
  CallResult,
  DeferredCall,
  CallRecord,
  CallLedger,
  ReplicaLeases,
} from './ports/call-ledger.port.ts';
export type { Caller, HostedEnvironment, EnvironmentDirectory } from './ports/directory.port.ts';
export type { SessionObserver } from './ports/observer.port.ts';
export type { NativeAction, NativeReply, NativeServer, NativeSession, UploadedTasks } from './ports/native.port.ts';
export type { SealedRow, SecretBox } from './ports/secret-box.port.ts';
export { type SessionPolicy, defaultSessionPolicy, ADMITTED_RESERVATION_TIMEOUT_MS } from './ports/session-policy.ts';
export type { SessionFailure, SessionRecord, SessionActivity, Recording, SessionStore } from './ports/session-store.port.ts';
export { classifyOutcome, errorOfOutcome } from './registry/failure.ts';
export { SecretMask } from './registry/secrets.ts';
export { decodeSecrets } from './registry/secrets-header.ts';
export { listAllTasks } from './ports/task-catalogue.port.ts';
export { TaskSetBackend } from './tasks/task-set-backend.ts';
export type { TaskPosition, TaskSource } from './tasks/task-source.ts';
