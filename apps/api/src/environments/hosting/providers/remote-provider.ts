import { type Capabilities, HostingError, type InstanceSpec, type Provider, type RunningInstance } from '@palestra/hosting';
import type pg from 'pg';

const CAPABILITIES: Capabilities = {
  isolation: ['none'],
  egress: ['open'],
  gpus: false,
  limits: false,
  maxMemoryMb: null,
  builds: false,
};

interface Row {
  id: string;
  version_id: string;
  endpoint: string | null;
  created_at: Date;
}

/**
 * Servers that authors run themselves: each URL of the artifact is one instance, and a URL that stands there twice has twice the sessions.
 * The rows of instances are all that there is of them, so nothing is started or stopped.
 */
export class RemoteProvider implements Provider {
  readonly name = 'remote';
  #turn: Promise<unknown> = Promise.resolve();

  constructor(private readonly pool: Pick<pg.Pool, 'query'>) {}

  async capabilities(): Promise<Capabilities> {
    return CAPABILITIES;
  }

  /** Gives the instance one of the URLs that fewer instances have than it stands there. One at a time, so that two do not take the same. */
  ensure(spec: InstanceSpec): Promise<RunningInstance> {
    const ensured = this.#turn.then(() => this.#ensure(spec));
    this.#turn = ensured.catch(() => {});
    return ensured;
  }

  async #ensure({ id, versionId, artifact }: InstanceSpec): Promise<RunningInstance> {
    if (artifact.kind !== 'urls') throw new HostingError('instance_failed', 'Only servers with a URL run without an engine.');
    const rows = (await this.#rows()).filter((row) => row.version_id === versionId);
    const own = rows.find((row) => row.id === id);
    const taken = rows.filter((row) => row.id !== id).flatMap(({ endpoint }) => endpoint ?? []);
    const free = [...artifact.urls];
    for (const url of taken) if (free.includes(url)) free.splice(free.indexOf(url), 1);
    const endpoint = own?.endpoint ?? free[0];
    if (endpoint === undefined) throw new HostingError('instance_failed', `All ${artifact.urls.length} URLs have an instance.`);
    await this.pool.query('UPDATE environment_instances SET endpoint = $2 WHERE id = $1', [id, endpoint]);
    return running({ id, version_id: versionId, endpoint, created_at: own?.created_at ?? new Date() });
  }

  async list(): Promise<RunningInstance[]> {
    return (await this.#rows()).filter(({ endpoint }) => endpoint !== null).map(running);
  }

  /** Takes the URL from the instance, for the next one. */
  async remove(id: string): Promise<void> {
    await this.pool.query('UPDATE environment_instances SET endpoint = NULL WHERE id = $1', [id]);
  }

  // Its author has the log.
  async *logs(): AsyncGenerator<never> {}

  async stats(): Promise<null> {
    return null;
  }

  async build(): Promise<never> {
    throw new HostingError('build_failed', 'A server with a URL is not built.');
  }

  async prune(): Promise<void> {}

  async close(): Promise<void> {}

  async #rows(): Promise<Row[]> {
    const { rows } = await this.pool.query<Row>(
      `SELECT id, version_id, endpoint, created_at FROM environment_instances WHERE provider = 'remote' AND stopped_at IS NULL`,
    );
    return rows;
  }
}

const running = ({ id, version_id: versionId, endpoint, created_at: startedAt }: Row): RunningInstance => ({
  id,
  versionId,
  state: 'running',
  endpoint,
  exit: null,
  startedAt,
  restarts: 0,
});
