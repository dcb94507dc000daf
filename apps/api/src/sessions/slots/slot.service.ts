import { Inject, Injectable } from '@nestjs/common';
import { parseJson, type SlotGroup, type SlotHolder, type SlotList, type SlotListQuery } from '@palestra/protocol';
import type { Caller, EnvironmentDirectory, HostedEnvironment, Recording } from '@palestra/session';
import { ENVIRONMENT_DIRECTORY } from '../../environments/directory.token.ts';
import { EnvironmentAccess } from '../../environments/environment.access.ts';
import { Database } from '../../platform/database/database.ts';
import { LEASE_MS } from '../persistence/replica-leases.sql.ts';
import { presentHolder, presentLastCall } from '../views/session.presenter.ts';
import { countReplicas, selectSlotGroups, selectSlotHolders, type SlotGroupRecord, type SlotHolderRecord } from './slot.sql.ts';

/** Lists who holds the slots of environments. */
@Injectable()
export class SlotService {
  constructor(
    @Inject(Database) private readonly database: Database,
    @Inject(ENVIRONMENT_DIRECTORY) private readonly directory: EnvironmentDirectory,
    @Inject(EnvironmentAccess) private readonly access: EnvironmentAccess,
  ) {}

  async list(caller: Caller, query: SlotListQuery): Promise<SlotList> {
    const { pool } = this.database;
    const selected = query.environment === undefined ? null : await this.#findEnvironment(caller, query.environment);
    const groups = await selectSlotGroups(pool, caller.orgId, selected?.versionIds ?? [], selected?.environment ?? null);
    const [holders, replicas] = await Promise.all([
      selectSlotHolders(pool, caller.orgId, groups, query.limit),
      countReplicas(pool, LEASE_MS),
    ]);
    const environments = await Promise.all(
      groups.map(async (group) => {
        const hosted = await this.directory.version(group.version_id).catch(() => null);
        const sessions = holders.filter(({ version_id: versionId }) => versionId === group.version_id);
        return presentGroup(group, sessions, capacityOf(hosted, replicas), caller);
      }),
    );
    return { environments };
  }

  /** Throws `environment_not_found` for an environment that the caller may not see. */
  async #findEnvironment(caller: Caller, environment: string): Promise<{ environment: string; versionIds: string[] }> {
    const slash = environment.indexOf('/');
    const [owner, name] = [environment.slice(0, Math.max(0, slash)), environment.slice(slash + 1)];
    const record = await this.access.visible(caller, owner, name);
    return { environment: `${record.owner}/${record.name}`, versionIds: record.versions.map((version) => version.id) };
  }
}

/** The capacity of all replicas together: a bundled environment has a process beside each of them. */
function capacityOf(hosted: HostedEnvironment | null, replicas: number): number | null {
  if (hosted === null || hosted.policy.capacity === null) return null;
  return hosted.policy.capacity * (hosted.owned && hosted.sharedCapacity !== true ? Math.max(1, replicas) : 1);
}

/** Shows usage by other organisations only to the environment's owner, or if the capacity is limited. */
function presentGroup(group: SlotGroupRecord, sessions: SlotHolderRecord[], capacity: number | null, caller: Caller): SlotGroup {
  return {
    environment: group.environment,
    version: group.number,
    managed: group.managed,
    capacity,
    used: group.managed || capacity !== null ? group.used : group.own,
    waiting: group.waiting,
    sessions: sessions.map((session) => presentSlot(session, caller)),
  };
}

/** The split and index of the task; null for a task that was given as a specification. */
function presentTask(text: string | null): SlotHolder['task'] {
  const task = text === null ? null : (parseJson(text) as { kind?: unknown; split?: unknown; index?: unknown });
  if (task === null || task.kind !== 'index') return null;
  return { split: String(task.split), index: Number(task.index) };
}

function presentSlot(row: SlotHolderRecord, caller: Caller): SlotHolder {
  const own = row.org_id === caller.orgId;
  return {
    sid: own ? row.sid : null,
    state: row.state,
    waiting: row.waiting,
    org: row.org_name ?? '',
    holder: own ? presentHolder(row) : null,
    owner_replica: row.owner_replica_id,
    created_at: row.created_at.toISOString(),
    last_seen_at: row.last_seen_at.toISOString(),
    last_call: presentLastCall(row),
    task: own ? presentTask(row.task) : null,
    run: own && row.recording !== null ? (parseJson(row.recording) as Recording).run : null,
  };
}
