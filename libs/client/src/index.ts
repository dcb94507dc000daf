/// <reference types="node" preserve="true" />
import '@palestra/kit/node-version';
export { PalestraClient, type ClientOptions } from './client.ts';
export type { EnvironmentServer } from './environments.ts';
export { ClientError, PalestraApiError, ConnectionError, ToolCallError, ToolFailedError, SessionTerminatedError } from './errors.ts';
export type { ErrorClass } from './failures.ts';
export {
  playGroup,
  type GroupOptions,
  type GroupResult,
  type Policy,
  type PolicyAction,
  type PolicyTurn,
  type SampleResult,
} from './play-group.ts';
export type { Hosting, LogOptions, RuntimeLogOptions, UploadDeployOptions } from './hosting.ts';
export type { UploadReport } from './rollout-uploader.ts';
export type { Rollout, RolloutMessage, RolloutStart } from './rollouts.ts';
export type { AttachOptions, QueuePosition, Session, SessionOptions } from './session.ts';
export type { SessionEvent, SessionListOptions, Sessions } from './sessions.ts';
export type { PushedTasks, TaskFile } from './task-sets.ts';
