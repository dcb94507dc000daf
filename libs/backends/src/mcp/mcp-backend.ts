import { PalestraError } from '@palestra/protocol';
import type { Backend, BackendSession, BackendSessionRef } from '@palestra/session';

const todo = (): Promise<never> => Promise.reject(new PalestraError('not_available'));

export type McpServer = { url: string } | { command: string; args: string[] };

export class McpBackend implements Backend {
  constructor(readonly options: McpServer) {}
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
