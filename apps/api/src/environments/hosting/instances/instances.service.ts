import { Injectable } from '@nestjs/common';
import { isUuid } from '@palestra/kit';
import { type HostingSettings, type InstanceList, type InstanceView, PalestraError } from '@palestra/protocol';
import { hostingSettingsSchema } from '@palestra/protocol/schemas';
import type { Caller } from '@palestra/session';
import { Database } from '../../../platform/database/database.ts';
import { inTransaction } from '../../../platform/database/transaction.ts';
import { EnvironmentAccess } from '../../environment.access.ts';
import { type EnvironmentRecord, sourceOf } from '../../environment.record.ts';
import { EnvironmentRepository } from '../../environment.repository.ts';
import { hostingOf } from '../hosting-settings.ts';
import { HostingEngines } from '../providers/hosting-engines.service.ts';
import { forgiveCrashes, listInstances, type ListedInstance, selectInstance, selectQueue, selectServing } from './instance-list.sql.ts';
import { drainInstances, lockPlacement } from './instance.sql.ts';
import { notifyHosting } from '../hosting-events.ts';

/** Living instances that a page shows. */
const MOST_LISTED = 1_000;
/** Those that take new sessions, now or soon. */
const SERVING = new Set<ListedInstance['state']>(['starting', 'ready']);
/** Settings with which an instance was started. Others take effect on running instances at once. */
const OF_START = ['provider', 'cpus', 'memory_mb', 'pids', 'disk_mb', 'gpus', 'isolation', 'egress', 'variables'] as const;

/** Instances of an environment and their settings, for those who manage it. */
@Injectable()
export class InstancesService {
  constructor(
    private readonly access: EnvironmentAccess,
    private readonly environments: EnvironmentRepository,
    private readonly engines: HostingEngines,
    private readonly database: Database,
  ) {}

  async list(caller: Caller, owner: string, name: string): Promise<InstanceList> {
    const environment = await this.access.managed(caller, owner, name);
    const { pool } = this.database;
    const [instances, queue] = await Promise.all([listInstances(pool, environment.id, MOST_LISTED), selectQueue(pool, environment.id)]);
    const { concurrency } = hostingOf(environment, { artifact: environment.versions[0]?.artifact ?? null });
    const active = instances.reduce((sum, { state, sessions }) => sum + (SERVING.has(state) ? sessions : 0), 0);
    const { waiting, queue_ms } = queue;
    return { instances: instances.map(presentInstance), waiting, load: (active + waiting) / concurrency, queue_ms };
  }

  /** Its sessions finish on it, new ones go to the instance that replaces it. Of a version that does not start, others start at once. */
  async restart(caller: Caller, owner: string, name: string, id: string): Promise<InstanceView> {
    const environment = await this.access.managed(caller, owner, name);
    const instance = isUuid(id) ? await selectInstance(this.database.pool, environment.id, id) : null;
    if (instance === null) throw new PalestraError('instance_not_found');
    await forgiveCrashes(this.database.pool, instance.version_id);
    await this.#drain([{ id, version_id: instance.version_id }], 'Restarted by its owner.');
    await notifyHosting(this.database.pool, environment.id);
    const listed = await listInstances(this.database.pool, environment.id, MOST_LISTED);
    const changed = listed.find((one) => one.id === id);
    if (changed === undefined) throw new PalestraError('instance_not_found');
    return presentInstance(changed);
  }

  async settings(caller: Caller, owner: string, name: string): Promise<HostingSettings> {
    const environment = await this.access.managed(caller, owner, name);
    if (environment.hosting !== null) return hostingSettingsSchema.parse(environment.hosting);
    return this.engines.defaults().catch(() => hostingSettingsSchema.parse({}));
  }

  /**
   * Replaces the settings. Instances that were started with others finish their sessions and are replaced. Throws `hosting_off` and
   * `hosting_unsupported`.
   */
  async setSettings(caller: Caller, owner: string, name: string, settings: HostingSettings): Promise<HostingSettings> {
    const environment = await this.access.managed(caller, owner, name);
    if (settings.min_warm > settings.max)
      throw new PalestraError('invalid_request', { detail: `min_warm: ${settings.min_warm} is more than max, which is ${settings.max}.` });
    if (!isRemote(environment)) await this.engines.check(settings);
    await this.environments.update(environment, { hosting: settings });
    if (isStartedAnew(environment.hosting, settings))
      await this.#drain(await selectServing(this.database.pool, environment.id), 'The settings of the environment changed.');
    await notifyHosting(this.database.pool, environment.id);
    return settings;
  }

  async #drain(instances: readonly { id: string; version_id: string }[], reason: string): Promise<void> {
    await inTransaction(this.database.pool, async (client) => {
      await lockPlacement(client, [...new Set(instances.map(({ version_id: versionId }) => versionId))]);
      await drainInstances(
        client,
        instances.map(({ id }) => ({ id, reason })),
      );
    });
  }
}

/** Its author runs its servers, so no engine has to enforce the settings. */
function isRemote({ versions }: EnvironmentRecord): boolean {
  const source = versions[0] === undefined ? null : sourceOf(versions[0]);
  return source?.kind === 'hosted' && source.provider === 'remote';
}

function isStartedAnew(stored: unknown, settings: HostingSettings): boolean {
  const before = hostingSettingsSchema.safeParse(stored ?? {}).data;
  return before === undefined || OF_START.some((name) => JSON.stringify(before[name]) !== JSON.stringify(settings[name]));
}

const presentInstance = (row: ListedInstance): InstanceView => ({
  id: row.id,
  version: row.version,
  provider: row.provider,
  state: row.state,
  detail: row.detail,
  sessions: row.sessions,
  restarts: row.restarts,
  cpus: row.stats?.cpus ?? null,
  memory_mb: row.stats?.memory_mb ?? null,
  cold_start_ms: row.ready_at === null ? null : row.ready_at.getTime() - row.created_at.getTime(),
  created_at: row.created_at.toISOString(),
  ready_at: row.ready_at?.toISOString() ?? null,
  stopped_at: row.stopped_at?.toISOString() ?? null,
});
