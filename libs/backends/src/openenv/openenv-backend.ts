import { PalestraError } from '@palestra/protocol';
import type { Backend, BackendSession, BackendSessionRef } from '@palestra/session';

const todo = (): Promise<never> => Promise.reject(new PalestraError('not_available'));

export class OpenEnvBackend implements Backend {
  constructor(readonly options: { url: string; deployment?: string }) {}
  environments = todo;
  tools = todo;
  splits = todo;
  tasks = todo;
  numTasks = todo;
  task = todo;
  taskRange = todo;
  create = todo;
  session(_ref: BackendSessionRef): BackendSession {
    throw new PalestraError('not_available');
  }
  async close(): Promise<void> {}
}
