import type { OrsServer } from './ors-server.ts';

/** Operations that answer with an event stream; all others answer with JSON. */
export type OrsStream = 'createSession' | 'call' | 'scoreGroup';
/** Operations of sandboxes, which `OrsServer` does not serve. */
export type OrsSandbox = 'createSandbox' | 'run' | 'statFile' | 'readFile' | 'writeFile' | 'setNetwork';
type OrsJson = Exclude<
  { [K in keyof OrsServer]: OrsServer[K] extends (...args: never[]) => unknown ? K : never }[keyof OrsServer],
  OrsStream
>;
export type OrsOperation = OrsStream | OrsJson | OrsSandbox;

export interface OrsRoute {
  method: 'GET' | 'POST';
  path: string;
  operation: OrsOperation;
  /** Needs no key. */
  public: boolean;
  /** Also below `/{variant}/` and `/{owner}/{name}/`. */
  scoped: boolean;
}

const route = (method: OrsRoute['method'], path: string, operation: OrsOperation, options: Partial<OrsRoute> = {}): OrsRoute => ({
  method,
  path,
  operation,
  public: false,
  scoped: false,
  ...options,
});
const scoped = { scoped: true };

/** The routes of docs/reference/ors.md#endpoints. */
export const orsRoutes: readonly OrsRoute[] = [
  route('GET', '/health', 'health', { public: true }),
  route('GET', '/version', 'serverVersion', { public: true }),
  route('GET', '/list_environments', 'listEnvironments'),
  route('GET', '/tools', 'tools', scoped),
  route('GET', '/splits', 'splits', scoped),
  route('POST', '/tasks', 'tasks', scoped),
  route('POST', '/num_tasks', 'numTasks', scoped),
  route('POST', '/task', 'task', scoped),
  route('POST', '/task_range', 'taskRange', scoped),
  route('POST', '/create_session', 'createSession'),
  route('POST', '/create', 'create'),
  route('GET', '/prompt', 'prompt', scoped),
  route('GET', '/messages', 'messages', scoped),
  route('GET', '/task_tools', 'taskTools', scoped),
  route('POST', '/call', 'call', scoped),
  route('POST', '/score_group', 'scoreGroup', scoped),
  route('POST', '/ping', 'ping'),
  route('POST', '/delete', 'delete'),
  route('POST', '/delete_session', 'delete'),
  route('POST', '/create_sandbox', 'createSandbox'),
  route('POST', '/run', 'run'),
  route('POST', '/stat_file', 'statFile'),
  route('POST', '/read_file', 'readFile'),
  route('POST', '/write_file', 'writeFile'),
  route('POST', '/set_network', 'setNetwork'),
];
