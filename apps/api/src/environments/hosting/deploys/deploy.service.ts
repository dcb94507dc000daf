import { randomUUID } from 'node:crypto';
import type { Readable } from 'node:stream';
import { Inject, Injectable } from '@nestjs/common';
import { isUuid } from '@palestra/kit';
import {
  type CreateDeploy,
  type DeployOptions,
  type DeploySource,
  type DeployView,
  type HostingSettings,
  PalestraError,
} from '@palestra/protocol';
import { createEnvironmentSchema } from '@palestra/protocol/schemas';
import type { Caller } from '@palestra/session';
import { JOB_SCHEMA } from '../../../jobs/job-schema.ts';
import { JobQueue } from '../../../jobs/job-queue.service.ts';
import { type Config, CONFIG } from '../../../platform/config.ts';
import { Database } from '../../../platform/database/database.ts';
import { inTransaction } from '../../../platform/database/transaction.ts';
import { limitError } from '../../../platform/limits.ts';
import { EnvironmentAccess, mayManage } from '../../environment.access.ts';
import type { EnvironmentRecord } from '../../environment.record.ts';
import { EnvironmentRepository } from '../../environment.repository.ts';
import { notifyHosting } from '../hosting-events.ts';
import { HostingEngines } from '../providers/hosting-engines.service.ts';
import { DeploySources } from './deploy-sources.ts';
import { presentDeploy } from './deploy.presenter.ts';
import {
  countOpenDeploys,
  type DeployRow,
  insertDeploy,
  type NewDeploy,
  requestCancel,
  selectDeploy,
  selectLastPriority,
  selectDeploys,
} from './deploy.sql.ts';

const DEFAULT_CHANNEL = 'stable';
const LISTED = 100;
/** Of the job. After fewer interruptions the deploy fails (deploy-runner.ts). */
const ATTEMPTS = 12;

/** Who begins a deploy, for its row. */
export interface DeployAuthor {
  orgId: string;
  name: string;
}

/** What a deploy is of: everything but a tarball, which is stored before. */
export interface DeployRequest {
  source: DeploySource;
  /** Null: no channel is promoted. */
  channel: string | null;
  settings?: HostingSettings | undefined;
  dockerfile?: string | undefined;
}

/** Begins, lists and cancels deploys. A job does the work (deploy-runner.ts). */
@Injectable()
export class DeployService {
  // Seven parts: a deploy begins with the check of everything that can be checked before its job.
  constructor(
    private readonly access: EnvironmentAccess,
    private readonly environments: EnvironmentRepository,
    private readonly sources: DeploySources,
    private readonly engines: HostingEngines,
    private readonly jobs: JobQueue,
    private readonly database: Database,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  /** Throws `hosting_off`, `hosting_unsupported`, `environment_not_found`, `forbidden`, `limit_reached`. */
  async create(caller: Caller, owner: string, name: string, { source, ...options }: CreateDeploy): Promise<DeployView> {
    const environment = await this.#environment(caller, owner, name, options);
    if (source.kind !== 'url') await this.#assertSupported(environment, options.settings, source.kind !== 'image');
    const author = { orgId: caller.orgId, name: await this.#authorOf(caller) };
    return this.enqueue(environment, author, { source, ...options, channel: channelOf(options) });
  }

  /** Deploys a tarball. `bytes`: as the client announced them; null: it did not. Throws as `create`, `source_too_large` and `capacity_exhausted`. */
  async upload(
    caller: Caller,
    owner: string,
    name: string,
    options: DeployOptions & { settings?: HostingSettings | undefined },
    { body, bytes }: { body: Readable; bytes: number | null },
  ): Promise<DeployView> {
    const environment = await this.#environment(caller, owner, name, options);
    await this.#assertSupported(environment, options.settings, true);
    await this.#assertRoom(caller.orgId);
    const id = randomUUID();
    const sourceKey = await this.sources.store({ orgId: caller.orgId, environmentId: environment.id, deployId: id }, bytes, body);
    try {
      const author = { orgId: caller.orgId, name: await this.#authorOf(caller) };
      return await this.enqueue(
        environment,
        author,
        { ...options, source: { kind: 'folder' }, channel: channelOf(options) },
        { id, sourceKey },
      );
    } catch (error) {
      await this.sources.delete(sourceKey).catch(() => {});
      throw error;
    }
  }

  /** Stores a deploy with its job. `stored`: the id and key of an uploaded source. Throws `hosting_off` and `limit_reached`. */
  async enqueue(
    environment: Pick<EnvironmentRecord, 'id'>,
    { orgId, name: author }: DeployAuthor,
    { source, channel, settings, dockerfile }: DeployRequest,
    stored: { id: string; sourceKey: string | null } = { id: randomUUID(), sourceKey: null },
  ): Promise<DeployView> {
    this.assertHosting();
    const options = { ...(settings && { settings }), ...(dockerfile !== undefined && { dockerfile }) };
    const deploy: NewDeploy = { ...stored, environmentId: environment.id, orgId, source, options, channel, author };
    await inTransaction(this.database.pool, async (client) => {
      await client.query('SELECT FROM organisations WHERE id = $1 FOR UPDATE', [orgId]);
      const open = await countOpenDeploys(client, orgId);
      if (open >= this.#most) throw limitError('deploys', 'org', this.#most);
      await insertDeploy(client, deploy);
      // Deploys of one environment run one after another, those of each organisation in turn.
      const serialKey = `deploy:${environment.id}`;
      const priority = Math.max(open, await selectLastPriority(client, JOB_SCHEMA, serialKey));
      const job = { key: `deploy:${deploy.id}`, serialKey, maxAttempts: ATTEMPTS, priority };
      await this.jobs.add('deploy', { id: deploy.id }, job, client);
      await notifyHosting(client, environment.id);
    });
    return presentDeploy((await selectDeploy(this.database.pool, deploy.id))!);
  }

  /** Throws `hosting_off` where the operator does not run environments. */
  assertHosting(): void {
    if (this.config.hosting.engine === 'off') throw new PalestraError('hosting_off');
  }

  /** The last deploys, newest first. */
  async list(caller: Caller, owner: string, name: string): Promise<{ deploys: DeployView[] }> {
    const { id } = await this.access.managed(caller, owner, name);
    return { deploys: (await selectDeploys(this.database.pool, id, LISTED)).map(presentDeploy) };
  }

  async get(caller: Caller, id: string): Promise<DeployView> {
    return presentDeploy(await this.find(caller, id));
  }

  /** A deploy of the caller's organisation. Throws `deploy_not_found`. */
  async find(caller: Caller, id: string): Promise<DeployRow> {
    const row = isUuid(id) ? await selectDeploy(this.database.pool, id) : null;
    if (row === null || caller.anonymous || row.org_id !== caller.orgId) throw new PalestraError('deploy_not_found');
    return row;
  }

  /** Ends a deploy. One that runs ends within seconds; one that has ended stays as it is. */
  async cancel(caller: Caller, id: string): Promise<DeployView> {
    const row = await this.find(caller, id);
    const detail = `${await this.#authorOf(caller)} cancelled the deploy.`;
    await requestCancel(this.database.pool, row.id, { code: 'build_cancelled', detail, line: null });
    await notifyHosting(this.database.pool, row.environment_id);
    const now = (await selectDeploy(this.database.pool, row.id))!;
    if (now.state === 'cancelled' && now.source_key !== null) await this.sources.delete(now.source_key);
    return presentDeploy(now);
  }

  get #most(): number {
    return this.config.limits.deploys.org;
  }

  /** The job checks it again, because the engine may change until then. `builds`: the source is a folder. */
  async #assertSupported({ hosting }: EnvironmentRecord, settings: HostingSettings | undefined, builds: boolean): Promise<void> {
    const wanted = settings ?? (hosting as HostingSettings | null);
    const { name, capabilities } = wanted === null ? await this.engines.choose(null) : await this.engines.check(wanted);
    if (!builds || capabilities.builds) return;
    throw new PalestraError('hosting_unsupported', {
      detail: `The engine "${name}" of this server builds no folders. Push an image to a registry, and deploy it with --image, or ask the operator for builds.`,
    });
  }

  /** Before an upload: a client need not send what cannot be deployed. */
  async #assertRoom(orgId: string): Promise<void> {
    if ((await countOpenDeploys(this.database.pool, orgId)) >= this.#most) throw limitError('deploys', 'org', this.#most);
  }

  /** The environment, which is created if the client asks for that. */
  async #environment(caller: Caller, owner: string, name: string, options: DeployOptions): Promise<EnvironmentRecord> {
    this.assertHosting();
    if (!options.create) return this.access.managed(caller, owner, name);
    const known = await this.environments.find(owner, name);
    if (known !== null && mayManage(known, caller)) return known;
    const namespace = await this.access.namespace(caller, owner);
    const parsed = createEnvironmentSchema.shape.name.safeParse(name);
    if (!parsed.success) throw new PalestraError('invalid_request', { detail: `${parsed.error.issues[0]!.message}.` });
    const created = { orgId: caller.orgId, owner: namespace, name, description: '', isHarbor: false, readmeContent: null };
    try {
      return await this.environments.create({ ...created, isPrivate: options.private }, null, null);
    } catch (error) {
      // Another request created it meanwhile.
      if (!(error instanceof PalestraError) || error.code !== 'environment_exists') throw error;
      return this.access.managed(caller, owner, name);
    }
  }

  async #authorOf(caller: Caller): Promise<string> {
    return (await this.environments.userName(caller.userId)) ?? caller.userId;
  }
}

const channelOf = ({ channel }: DeployOptions): string | null => (channel === undefined ? DEFAULT_CHANNEL : channel || null);
