import type {
  EnvironmentDiscoveryView,
  EnvironmentDetails,
  EnvironmentList,
  EnvironmentReport,
  EnvironmentVersionList,
  EnvironmentVersionView,
  EnvironmentView,
  SessionPolicyView,
  Split,
  TaskDifficulty,
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

/** The server of an environment that its owner runs: ORS (`remote`), OpenEnv or MCP. */
export type EnvironmentServer = { kind: 'remote' | 'openenv' | 'mcp'; url: string } | { kind: 'mcp'; command: string[] };

/** A query string without the undefined values. */
export function query(values: Record<string, string | number | undefined>): string {
  const present = Object.entries(values).filter((entry): entry is [string, string | number] => entry[1] !== undefined);
  return present.length === 0 ? '' : `?${new URLSearchParams(present.map(([key, value]): [string, string] => [key, String(value)]))}`;
}

/** `owner/name` as path segments. */
export function environmentPath(environment: string): string {
  const [owner, name, ...rest] = environment.split('/');
  if (!owner || !name || rest.length > 0) throw new TypeError(`Invalid environment ${JSON.stringify(environment)}. Expected owner/name.`);
  return `/v1/environments/${encodeURIComponent(owner)}/${encodeURIComponent(name)}`;
}

/** The registered environments, and the tasks of their servers. */
export class Environments {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  async list(options: ListOptions = {}): Promise<EnvironmentList> {
    return (await this.#connection.json({ path: `/v1/environments${query({ ...options })}` })) as EnvironmentList;
  }

  async get(environment: string): Promise<EnvironmentDetails> {
    return (await this.#connection.json({ path: environmentPath(environment) })) as EnvironmentDetails;
  }

  /**
   * Registers a running server; with only a URL, an ORS server; with `server: null`, an environment for a deploy. Not retried, because a repeat
   * would find the name taken.
   */
  async add(options: {
    name: string;
    namespace?: string | undefined;
    description?: string;
    readme?: string | null;
    /** Default: true. A public environment is visible to every organisation of the service. */
    isPrivate?: boolean;
    url?: string;
    /** `bundled`: it runs like the bundled environment of this name. */
    server?: EnvironmentServer | { kind: 'bundled'; name: string } | null;
  }): Promise<EnvironmentView> {
    const { name, namespace, url, description = '', readme, isPrivate = true, server } = options;
    const source = server === null ? undefined : (server ?? { kind: 'remote', url });
    const body = { name, namespace, description, isPrivate, readme, source };
    return (await this.#connection.json({ method: 'POST', path: '/v1/environments', body, retry: noRetry })) as EnvironmentView;
  }

  /** Adds an immutable version on another server. */
  async addVersion(environment: string, server: EnvironmentServer): Promise<EnvironmentVersionView> {
    const path = `${environmentPath(environment)}/versions`;
    return (await this.#connection.json({ method: 'POST', path, body: { source: server }, retry: noRetry })) as EnvironmentVersionView;
  }

  /** Its immutable versions, newest first. */
  async versions(environment: string): Promise<EnvironmentVersionList['versions']> {
    return ((await this.#connection.json({ path: `${environmentPath(environment)}/versions` })) as EnvironmentVersionList).versions;
  }

  /** Changes the description or README. */
  async describe(environment: string, details: { description?: string; readme?: string | null }): Promise<EnvironmentView> {
    const body = { new_description: details.description, new_readme_content: details.readme };
    return (await this.#connection.json({ method: 'PUT', path: `${environmentPath(environment)}/details`, body })) as EnvironmentView;
  }

  /** Replaces the timeouts, capacity and guarantees of its sessions; null removes them. Open sessions keep theirs. */
  async setSessions(environment: string, sessions: SessionPolicyView | null): Promise<EnvironmentView> {
    return (await this.#connection.json({
      method: 'PUT',
      path: `${environmentPath(environment)}/details`,
      body: { sessions },
    })) as EnvironmentView;
  }

  /**
   * Replaces the report of a version: what validation found and what scripted players reached. `version`: the one that was validated; default:
   * the newest.
   */
  async setReport(environment: string, report: EnvironmentReport, version?: number): Promise<{ version: number }> {
    const path = `${environmentPath(environment)}/report${query({ version })}`;
    return (await this.#connection.json({ method: 'PUT', path, body: report })) as { version: number };
  }

  /** Splits, task counts and tools of every variant, from the last discovery. */
  async discovery(environment: string): Promise<EnvironmentDiscoveryView> {
    return (await this.#connection.json({ path: `${environmentPath(environment)}/discovery` })) as EnvironmentDiscoveryView;
  }

  async tasks(environment: string, options: { split: string; start?: number; limit?: number; variant?: string }): Promise<TaskPageView> {
    return (await this.#connection.json({ path: `${environmentPath(environment)}/tasks${query({ ...options })}` })) as TaskPageView;
  }

  /** Rewards per task of the caller's scored rollouts. */
  async taskDifficulty(environment: string, options: { split: string }): Promise<TaskDifficulty['tasks']> {
    const path = `${environmentPath(environment)}/task-difficulty${query(options)}`;
    return ((await this.#connection.json({ path })) as TaskDifficulty).tasks;
  }

  /** Reads the splits from the environment's server. */
  async splits(environment: string, variant?: string): Promise<Split[]> {
    return (await this.#connection.json({ path: `${prefix(variant)}/splits`, headers: deployment(environment) })) as Split[];
  }

  async tools(environment: string, variant?: string): Promise<ToolsAnswer> {
    return (await this.#connection.json({ path: `${prefix(variant)}/tools`, headers: deployment(environment) })) as ToolsAnswer;
  }

  async numTasks(environment: string, split: string, variant?: string): Promise<number> {
    const answer = await this.#post(environment, variant, '/num_tasks', { split });
    return (answer as { num_tasks: number }).num_tasks;
  }

  async task(environment: string, split: string, index: number, variant?: string): Promise<TaskSpec> {
    const answer = await this.#post(environment, variant, '/task', { split, index });
    return (answer as { task: TaskSpec }).task;
  }

  /** Tasks from `start` to `stop` (exclusive). */
  async taskRange(environment: string, split: string, start: number, stop: number, variant?: string): Promise<TaskSpec[]> {
    const answer = await this.#post(environment, variant, '/task_range', { split, start, stop });
    return (answer as { tasks: TaskSpec[] }).tasks;
  }

  #post(environment: string, variant: string | undefined, path: string, body: object): Promise<unknown> {
    return this.#connection.json({ method: 'POST', path: prefix(variant) + path, headers: deployment(environment), body });
  }
}

const prefix = (variant: string | undefined): string => (variant ? `/${encodeURIComponent(variant)}` : '');
const deployment = (environment: string) => ({ 'x-deployment': environment });
