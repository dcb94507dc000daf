import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { type ConnectGithub, type GithubSettings, type HostingSettings, PalestraError, type UpdateGithub } from '@palestra/protocol';
import { gitLinkBodySchema, hostingSettingsSchema } from '@palestra/protocol/schemas';
import type { Caller } from '@palestra/session';
import { Database } from '../../../platform/database/database.ts';
import { EnvironmentAccess, mayManage } from '../../environment.access.ts';
import type { EnvironmentRecord } from '../../environment.record.ts';
import { DeployService } from '../deploys/deploy.service.ts';
import { selectDeploys } from '../deploys/deploy.sql.ts';
import type { LogScope } from '../logs/hosting-log.sql.ts';
import { LogReader } from '../logs/log-reader.service.ts';
import { InstancesService } from '../instances/instances.service.ts';
import { HostingEngines } from '../providers/hosting-engines.service.ts';
import { defaultSettings } from '../providers/supported-settings.ts';
import { GitLinkService, sourceOfLink } from './git-link.service.ts';
import { selectRemotes } from './git-link.sql.ts';

const LISTED = 100;
/** The last lines of a build. */
const BUILD_LINES = 2_000;
const INSTALLATION = 'palestra';
const GB = 1_024;

interface Remote {
  id: string;
  /** `owner/repository`, as `orwd link` has it. */
  fullName: string;
  url: string;
}

/** Git repositories and deploys, as the `orwd` CLI knows them. */
@Injectable()
export class GithubService {
  // Seven parts: the routes of orwd are about all of hosting.
  constructor(
    private readonly access: EnvironmentAccess,
    private readonly links: GitLinkService,
    private readonly deploys: DeployService,
    private readonly instances: InstancesService,
    private readonly engines: HostingEngines,
    private readonly reader: LogReader,
    private readonly database: Database,
  ) {}

  async repos(caller: Caller) {
    const repos = (await this.#remotes(caller)).map((remote) => ({ ...remote, installationId: INSTALLATION }));
    return { status: 'success' as const, repos };
  }

  async connect(caller: Caller, owner: string, name: string, { githubRepoId, settings, subdirectory }: ConnectGithub) {
    const environment = await this.access.managed(caller, owner, name);
    const remote = (await this.#remotes(caller)).find(({ id }) => id === githubRepoId);
    if (remote === undefined) {
      const detail = 'githubRepoId: this organisation has no repository with this id. "orwd update --github-url URL" names another one.';
      throw new PalestraError('invalid_request', { detail });
    }
    const body = gitLinkBodySchema.parse({ url: remote.url, subdirectory: subdirectory || null });
    this.deploys.assertHosting();
    const wanted = settings && (await this.#settingsFrom(environment, settings, true));
    if (wanted !== undefined) await this.engines.check(wanted);
    return this.#linkAndDeploy(caller, environment, body, wanted);
  }

  async update(caller: Caller, id: string, { settings, subdirectory }: UpdateGithub) {
    const environment = await this.#managedById(caller, id);
    const link = await this.links.find(id);
    if (link === null) throw new PalestraError('git_link_not_found');
    if (settings !== undefined) {
      const wanted = await this.#settingsFrom(environment, settings, false);
      await this.instances.setSettings(caller, environment.owner, environment.name, wanted);
    }
    const { url, ref } = link;
    if (subdirectory !== undefined && (subdirectory || null) !== link.subdirectory)
      return this.#linkAndDeploy(
        caller,
        environment,
        gitLinkBodySchema.parse({ url, ref, subdirectory: subdirectory || null, channel: link.channel }),
      );
    return { environmentId: id, deploymentId: null, webhookUrl: this.links.webhookUrl(id), webhookSecret: null };
  }

  async unlink(caller: Caller, id: string) {
    await this.#managedById(caller, id);
    await this.links.unlink(id);
    return { environmentId: id };
  }

  async deployments(caller: Caller, id: string) {
    await this.#managedById(caller, id);
    return (await selectDeploys(this.database.pool, id, LISTED)).map((row) => ({
      id: row.id,
      status: row.state,
      gitBranch: row.source.kind === 'git' ? (row.source.ref ?? null) : null,
      commitSha: row.commit,
      created_at: row.created_at.toISOString(),
    }));
  }

  async buildLog(caller: Caller, id: string) {
    const row = await this.deploys.find(caller, id);
    const lines = await this.#tail({ kind: 'deploy', environmentId: row.environment_id, deployId: id }, BUILD_LINES);
    return { status: row.state, logs: lines.map(({ text }) => text).join('\n') };
  }

  async runtimeLog(caller: Caller, id: string, limit: number) {
    const row = await this.deploys.find(caller, id);
    const { environment_id: environmentId, version_id: versionId } = row;
    const lines = versionId === null ? [] : await this.#tail({ kind: 'instances', environmentId, versionId, instanceId: null }, limit);
    const entries = lines.map(({ at, severity, text }) => ({ timestamp: at, severity: severity.toUpperCase(), message: text }));
    return { status: row.state, entries };
  }

  async taskBuilds(caller: Caller, id: string): Promise<{ taskBuilds: never[] }> {
    await this.deploys.find(caller, id);
    return { taskBuilds: [] };
  }

  /** `isFirst`: `orwd link` sends processors and memory also if its user names none, so an engine without limits does not get them. */
  async #settingsFrom({ hosting }: EnvironmentRecord, sent: Partial<GithubSettings>, isFirst: boolean): Promise<HostingSettings> {
    const stored = hosting as HostingSettings | null;
    const { capabilities } = await this.engines.choose(stored?.provider ?? null);
    const wanted = isFirst && !capabilities.limits ? { ...sent, cpuMemory: undefined } : sent;
    return hostingSettings(stored ?? defaultSettings(capabilities), wanted);
  }

  async #linkAndDeploy(
    caller: Caller,
    environment: EnvironmentRecord,
    body: Parameters<GitLinkService['link']>[2],
    settings?: HostingSettings,
  ) {
    const { webhook_url: webhookUrl, secret } = await this.links.link(caller, environment, body);
    const link = (await this.links.find(environment.id))!;
    const author = { orgId: caller.orgId, name: link.author };
    const deploy = await this.deploys.enqueue(environment, author, {
      source: sourceOfLink(link, link.ref),
      channel: link.channel,
      settings,
    });
    return { environmentId: environment.id, deploymentId: deploy.id, webhookUrl, webhookSecret: secret };
  }

  /** The last lines of a log, from the database. */
  async #tail(scope: LogScope, limit: number) {
    const lines = [];
    const query = { after: 0, limit, tail: limit, follow: false };
    const read = { scope, query, isArchived: false, isOver: async () => true };
    for await (const line of this.reader.read(read, new AbortController().signal)) lines.push(line);
    return lines;
  }

  async #remotes({ orgId }: Caller): Promise<Remote[]> {
    const urls = await selectRemotes(this.database.pool, orgId, LISTED);
    return urls.filter((url) => gitLinkBodySchema.shape.url.safeParse(url).success).map(remoteOf);
  }

  async #managedById(caller: Caller, id: string): Promise<EnvironmentRecord> {
    const environment = await this.access.visibleById(caller, id);
    if (!mayManage(environment, caller))
      throw new PalestraError('forbidden', { detail: 'The environment belongs to another organisation.' });
    return environment;
  }
}

function remoteOf(url: string): Remote {
  const segments = new URL(url).pathname
    .replace(/\.git$/, '')
    .split('/')
    .filter(Boolean);
  const id = createHash('sha256').update(url).digest('hex').slice(0, 16);
  return { id, fullName: decodeURIComponent(segments.slice(-2).join('/')), url };
}

/** Settings with those that orwd sends. Gigabytes become memory; a scale of 0 instances is 1 at most. */
function hostingSettings(known: HostingSettings, { cpuMemory, minScale, maxScale, concurrency }: Partial<GithubSettings>): HostingSettings {
  const [cpus, memory] = (cpuMemory ?? '').split('-').map(Number);
  return hostingSettingsSchema.parse({
    ...known,
    ...(cpuMemory !== undefined && { cpus, memory_mb: Math.round(memory! * GB) }),
    ...(minScale !== undefined && { min_warm: minScale }),
    ...(maxScale !== undefined && { max: Math.max(1, maxScale) }),
    ...(concurrency !== undefined && { concurrency }),
  });
}
