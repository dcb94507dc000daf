import type {
  EnvironmentDiscoveryView,
  EnvironmentList,
  EnvironmentVersionView,
  EnvironmentView,
  SessionPolicyView,
  Split,
  TaskPageView,
  TaskSpec,
  ToolsAnswer,
} from '@palestra/protocol';
import type { Connection } from './connection.ts';
import { noRetry } from './retry.ts';

export interface ListOptions {
  limit?: number;
  offset?: number;
  search?: string;
  owner?: string;
}

/** Where an environment runs that somebody keeps running: an ORS server (`remote`), an OpenEnv server, or an MCP server. */
export type EnvironmentServer = { kind: 'remote' | 'openenv' | 'mcp'; url: string } | { kind: 'mcp'; command: string[] };

/** Names of a request's query; absent ones are left out. */
export function query(values: Record<string, string | number | undefined>): string {
  const present = Object.entries(values).filter((entry): entry is [string, string | number] => entry[1] !== undefined);
  return present.length === 0 ? '' : `?${new URLSearchParams(present.map(([key, value]): [string, string] => [key, String(value)]))}`;
}

/** `owner/name` as path segments. */
export function environmentPath(environment: string): string {
  const [owner, name, ...rest] = environment.split('/');
  if (!owner || !name || rest.length > 0) throw new TypeError(`not an environment: ${JSON.stringify(environment)}; expected owner/name`);
  return `/v1/environments/${encodeURIComponent(owner)}/${encodeURIComponent(name)}`;
}

/** The registry, and what an environment's server says of its tasks. */
export class Environments {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  async list(options: ListOptions = {}): Promise<EnvironmentList> {
    return (await this.#connection.json({ path: `/v1/environments${query({ ...options })}` })) as EnvironmentList;
  }

  async get(environment: string): Promise<EnvironmentView> {
    return (await this.#connection.json({ path: environmentPath(environment) })) as EnvironmentView;
  }

  /** Registers a running server, an ORS one where only a URL is given. Sent once: a repeat would find the name taken by itself. */
  async add(options: {
    name: string;
    namespace?: string | undefined;
    description?: string;
    readme?: string | null;
    /** Left out: true. A public environment is visible to every organisation of the service. */
    isPrivate?: boolean;
    url?: string;
    server?: EnvironmentServer;
  }): Promise<EnvironmentView> {
    const { name, namespace, url, description = '', readme, isPrivate = true, server } = options;
    const body = { name, namespace, description, isPrivate, readme, source: server ?? { kind: 'remote', url } };
    return (await this.#connection.json({ method: 'POST', path: '/v1/environments', body, retry: noRetry })) as EnvironmentView;
  }

  /** A new immutable version on another server. */
  async addVersion(environment: string, server: EnvironmentServer): Promise<EnvironmentVersionView> {
    const path = `${environmentPath(environment)}/versions`;
    return (await this.#connection.json({ method: 'POST', path, body: { source: server }, retry: noRetry })) as EnvironmentVersionView;
  }

  /** Changes what pages say of it. */
  async describe(environment: string, details: { description?: string; readme?: string | null }): Promise<EnvironmentView> {
    const body = { new_description: details.description, new_readme_content: details.readme };
    return (await this.#connection.json({ method: 'PUT', path: `${environmentPath(environment)}/details`, body })) as EnvironmentView;
  }

  /** Sets timeouts, capacity and promises for its sessions, in place of what was set before; null = sets nothing. Open sessions keep theirs. */
  async setSessions(environment: string, sessions: SessionPolicyView | null): Promise<EnvironmentView> {
    return (await this.#connection.json({
      method: 'PUT',
      path: `${environmentPath(environment)}/details`,
      body: { sessions },
    })) as EnvironmentView;
  }

  /** Splits, counts and tools of every variant, as last discovered. */
  async discovery(environment: string): Promise<EnvironmentDiscoveryView> {
    return (await this.#connection.json({ path: `${environmentPath(environment)}/discovery` })) as EnvironmentDiscoveryView;
  }

  async tasks(environment: string, options: { split: string; start?: number; limit?: number; variant?: string }): Promise<TaskPageView> {
    return (await this.#connection.json({ path: `${environmentPath(environment)}/tasks${query({ ...options })}` })) as TaskPageView;
  }

  /** Asked of the environment's server now. */
  async splits(environment: string, variant?: string): Promise<Split[]> {
    return (await this.#connection.json({ path: `${prefix(variant)}/splits`, headers: deployment(environment) })) as Split[];
  }

  async tools(environment: string, variant?: string): Promise<ToolsAnswer> {
    return (await this.#connection.json({ path: `${prefix(variant)}/tools`, headers: deployment(environment) })) as ToolsAnswer;
  }

  async numTasks(environment: string, split: string, variant?: string): Promise<number> {
    const answer = await this.#ask(environment, variant, '/num_tasks', { split });
    return (answer as { num_tasks: number }).num_tasks;
  }

  async task(environment: string, split: string, index: number, variant?: string): Promise<TaskSpec> {
    const answer = await this.#ask(environment, variant, '/task', { split, index });
    return (answer as { task: TaskSpec }).task;
  }

  #ask(environment: string, variant: string | undefined, path: string, body: object): Promise<unknown> {
    return this.#connection.json({ method: 'POST', path: prefix(variant) + path, headers: deployment(environment), body });
  }
}

const prefix = (variant: string | undefined): string => (variant ? `/${encodeURIComponent(variant)}` : '');
const deployment = (environment: string) => ({ 'x-deployment': environment });
