import { Inject, Injectable } from '@nestjs/common';
import { type Artifact, type Capabilities, detectPlan, HostingError, type Provider, type SourceFacts } from '@palestra/hosting';
import { OutboundPolicy } from '@palestra/outbound';
import type { HostingSettings } from '@palestra/protocol';
import { Database } from '../../../platform/database/database.ts';
import type { EnvironmentRecord, HostedSource, VersionRecord } from '../../environment.record.ts';
import { EnvironmentRepository } from '../../environment.repository.ts';
import { ChannelsService } from '../channels/channels.service.ts';
import { selectLastLines } from '../logs/hosting-log.sql.ts';
import { InstanceStarter } from '../instances/instance-starter.ts';
import { HostingEngines } from '../providers/hosting-engines.service.ts';
import { HostingProviders } from '../providers/hosting-providers.ts';
import { runSettings } from '../providers/supported-settings.ts';
import { instanceSecrets } from '../secrets/environment-secrets.ts';
import type { DeployLog } from './deploy-log.ts';
import { DeploySources } from './deploy-sources.ts';
import { type DeployRow, setDeploySource, setDeployState } from './deploy.sql.ts';
import { digestOfText, fetchFolder } from './fetch-source.ts';
import { Verifier } from './verifier.ts';
import { VersionRows } from './version-rows.ts';

const MIB = 1024 * 1024;
/** Of the log of an instance whose probe failed. */
const COPIED_LINES = 20;
const BUILD = { seconds: 1_800, maxBytes: 16 * 1024 * MIB, minMemoryMb: 4_096 };

/** What the work needs beside its deploy. */
export interface DeployContext {
  log: DeployLog;
  /** Of the environment, with the credentials of its repository. */
  secrets: Record<string, string>;
  /** For the files of the source. */
  folder: string;
  signal: AbortSignal;
}

export interface DeployOutcome {
  versionId: string;
  /** The version is that of an earlier deploy. */
  reused: boolean;
}

/** The engine and the settings with which a version runs. */
interface Target {
  environment: EnvironmentRecord;
  provider: Provider;
  settings: HostingSettings;
  /** What the engine can enforce. */
  capabilities: Capabilities;
}

interface Built {
  source: HostedSource;
  facts: SourceFacts | null;
}

/** Turns the source of a deploy into a verified version, and promotes it. Every step can be repeated. */
@Injectable()
export class DeployWork {
  // Nine parts: each step of a deploy belongs to another one.
  constructor(
    private readonly database: Database,
    private readonly environments: EnvironmentRepository,
    private readonly sources: DeploySources,
    private readonly versions: VersionRows,
    private readonly engines: HostingEngines,
    private readonly providers: HostingProviders,
    private readonly starter: InstanceStarter,
    private readonly verifier: Verifier,
    private readonly channels: ChannelsService,
    @Inject(OutboundPolicy) private readonly outbound: OutboundPolicy,
  ) {}

  /** Rejects with `HostingError` or `PalestraError`, which say what the author can do. */
  async run(deploy: DeployRow, context: DeployContext): Promise<DeployOutcome> {
    const environment = await this.environments.findById(deploy.environment_id);
    if (environment === null) throw new HostingError('build_cancelled', 'The environment was deleted.');
    if (deploy.source.kind === 'url') return this.#deployUrls(deploy, environment, deploy.source.urls, context);
    const target = await this.#target(deploy, environment);
    const built = await this.#build(deploy, target, context);
    if (!('source' in built)) return this.#finish(deploy, target, built, context);
    const taskSetId = taskSetOf(environment);
    const known = await this.versions.findEqual(
      environment.id,
      { provider: built.source.provider, artifactDigest: built.source.artifact.digest },
      taskSetId,
    );
    if (known !== null) {
      context.log.note(`The build gave the same result as version ${known.number}. No new version is made.`);
      return this.#finish(deploy, target, known, context);
    }
    const version = (await this.versions.ofDeploy(deploy.id)) ?? (await this.versions.add(environment.id, built.source, taskSetId));
    if (version.state === 'ready') return this.#finish(deploy, target, version, context);
    await this.#verifyWith(target, deploy, version, built, context);
    return this.#promote(deploy, version, context.log);
  }

  /** Instances get the settings of the environment, so new ones are stored before, and taken back if the version fails. */
  async #verifyWith(
    { environment, settings }: Target,
    deploy: DeployRow,
    version: VersionRecord,
    built: Built,
    context: DeployContext,
  ): Promise<void> {
    const before = await this.versions.settings(environment.id);
    await this.#saveSettings(deploy, settings);
    try {
      await this.#verify(deploy, version, built, context);
    } catch (error) {
      await this.versions.replaceSettings(environment.id, deploy.options.settings ?? before ?? settings, before);
      throw error;
    }
  }

  async #target({ options }: DeployRow, environment: EnvironmentRecord): Promise<Target> {
    const stored = environment.hosting as HostingSettings | null;
    const settings = options.settings ?? stored ?? (await this.engines.defaults());
    const { name, capabilities } = await this.engines.check(settings);
    const provider = await this.providers.get(name);
    if (provider === null) throw new HostingError('engine_unavailable', `The engine "${name}" does not answer.`);
    return { environment, provider, settings, capabilities };
  }

  /** The artifact, or the version that an earlier deploy made of an equal source. */
  async #build(deploy: DeployRow, target: Target, context: DeployContext): Promise<Built | VersionRecord> {
    const { log, signal } = context;
    const { provider, settings, environment } = target;
    const limits = { ...BUILD, memoryMb: Math.max(BUILD.minMemoryMb, settings.memory_mb), network: true };
    const run = { ...runSettings(settings, target.capabilities), secrets: instanceSecrets(context.secrets) };
    const request = { deployId: deploy.id, cacheKey: environment.id, buildArguments: {}, limits, run };
    const onLine = log.write.bind(log);
    if (deploy.source.kind === 'image') {
      const { image, port = null } = deploy.source;
      const sourceDigest = digestOfText(JSON.stringify([image, port]));
      await setDeploySource(this.database.pool, deploy.id, sourceDigest, null);
      log.note(`Pulling ${image}.`);
      const artifact = await provider.build({ ...request, sourceDigest, source: { kind: 'image', image, port } }, onLine, signal);
      return { source: hostedSource(deploy, provider, artifact, sourceDigest, null), facts: null };
    }
    const fetching = { sources: this.sources, outbound: this.outbound, secrets: context.secrets, note: log.note.bind(log) };
    const { digest, commit } = await fetchFolder(deploy, context.folder, fetching, signal);
    await setDeploySource(this.database.pool, deploy.id, digest, commit);
    const known = await this.versions.findEqual(environment.id, { provider: provider.name, sourceDigest: digest }, taskSetOf(environment));
    if (known !== null && (await provider.has?.(known.artifact as unknown as Artifact, signal)) !== false) {
      if (known.deployId !== deploy.id) log.note(`The source is equal to that of version ${known.number}. No new version is made.`);
      return known;
    }
    if (known !== null) log.note(`The engine has lost the build of version ${known.number}, whose source is equal. It is built again.`);
    const { plan, facts } = await detectPlan(context.folder, planOptions(deploy, provider));
    log.note(`Found ${nounOf(facts)}. Building with the engine "${provider.name}".`);
    const source = { kind: 'folder' as const, folder: context.folder, plan };
    const artifact = await provider.build({ ...request, sourceDigest: digest, source }, onLine, signal);
    return { source: hostedSource(deploy, provider, artifact, digest, commit), facts };
  }

  /** Starts the first instance of the version and plays an episode on it. */
  async #verify(deploy: DeployRow, version: VersionRecord, { facts }: Built, { log, signal }: DeployContext): Promise<void> {
    await setDeployState(this.database.pool, deploy.id, 'verifying');
    log.note('Starting an instance.');
    await log.flush();
    const started = performance.now();
    const { id, endpoint } = await this.starter.start(version.id, signal);
    log.note(`Instance ${id} answers after ${Math.round(performance.now() - started)} ms. Playing an episode.`);
    const verified = await this.verifier
      .verifyInstance({ endpoint, deployment: `${deploy.owner}/${deploy.name}` }, log, signal)
      .catch(async (error: unknown) => {
        await this.#copyLog(deploy, id, log);
        throw error;
      });
    await this.versions.publish(version.id, verified);
    if (facts !== null) await this.environments.fillCard(deploy.environment_id, facts);
  }

  /** The last lines of an instance whose probe failed. */
  async #copyLog({ environment_id: environmentId }: DeployRow, instanceId: string, log: DeployLog): Promise<void> {
    const scope = { kind: 'instances', environmentId, versionId: null, instanceId } as const;
    const selection = { severities: null, text: null, after: 0, upTo: Number.MAX_SAFE_INTEGER, limit: COPIED_LINES };
    const lines = await selectLastLines(this.database.pool, scope, selection);
    if (lines.length > 0) log.note('The last lines of the instance:');
    for (const { text, severity } of lines) log.note(`  ${text}`, severity);
  }

  /** Servers that the author runs: nothing is built, and every one of them must offer the same. */
  async #deployUrls(
    deploy: DeployRow,
    environment: EnvironmentRecord,
    urls: readonly string[],
    context: DeployContext,
  ): Promise<DeployOutcome> {
    const { log, signal } = context;
    const digest = digestOfText(JSON.stringify(urls));
    await setDeploySource(this.database.pool, deploy.id, digest, null);
    await setDeployState(this.database.pool, deploy.id, 'verifying');
    const verified = await this.verifier.verifyUrls(urls, `${deploy.owner}/${deploy.name}`, log, signal);
    const taskSetId = taskSetOf(environment);
    const known = await this.versions.findEqual(environment.id, { provider: 'remote', sourceDigest: digest }, taskSetId);
    const isEqual = known !== null && known.toolsDigest === verified.toolsDigest && known.tasksDigest === verified.tasksDigest;
    if (deploy.options.settings !== undefined) await this.#saveSettings(deploy, deploy.options.settings);
    if (isEqual) log.note(`Version ${known.number} has these URLs, and they offer the same. No new version is made.`);
    const artifact: Artifact = { kind: 'urls', digest, urls: [...urls] };
    const source: HostedSource = {
      kind: 'hosted',
      protocol: verified.protocol,
      provider: 'remote',
      artifact,
      deployId: deploy.id,
      sourceDigest: digest,
      commit: null,
    };
    const version = isEqual
      ? known
      : ((await this.versions.ofDeploy(deploy.id)) ?? (await this.versions.add(environment.id, source, taskSetId)));
    if (version.state !== 'ready') await this.versions.publish(version.id, verified);
    return this.#promote(deploy, version, log);
  }

  async #finish(deploy: DeployRow, { settings }: Target, version: VersionRecord, { log }: DeployContext): Promise<DeployOutcome> {
    await this.#saveSettings(deploy, settings);
    return this.#promote(deploy, version, log);
  }

  async #promote(deploy: DeployRow, { id: versionId, number, deployId }: VersionRecord, log: DeployLog): Promise<DeployOutcome> {
    const { channel, environment_id: environmentId } = deploy;
    if (channel === null) log.note(`Version ${number} is ready. No channel was promoted.`);
    else {
      await this.channels.promoteVersion({ environmentId, versionId, channel, percent: 100, reason: `Deployed by ${deploy.author}.` });
      log.note(`Version ${number} is ready, and the channel "${channel}" follows it.`);
    }
    return { versionId, reused: deployId !== deploy.id };
  }

  /** A deploy without settings keeps those of its environment, which can have changed since it began. */
  #saveSettings({ environment_id: environmentId, options }: DeployRow, settings: HostingSettings): Promise<void> {
    if (options.settings === undefined) return this.versions.replaceSettings(environmentId, null, settings);
    return this.versions.saveSettings(environmentId, settings);
  }
}

/** As for versions that are added by URL: uploaded tasks stay. */
const taskSetOf = ({ versions }: EnvironmentRecord): string | null => versions[0]?.taskSetId ?? null;

function planOptions({ options: { dockerfile } }: DeployRow, { name }: Provider): { dockerfile?: string } {
  if (dockerfile === undefined) return {};
  if (name !== 'process') return { dockerfile };
  throw new HostingError(
    'hosting_unsupported',
    'The engine "process" builds no Dockerfiles. Leave --dockerfile out, or choose another engine.',
  );
}

const NOUNS: Record<SourceFacts['kind'], string> = {
  dockerfile: 'a Dockerfile',
  openenv: 'an OpenEnv environment',
  ors: 'an ORS server',
  kit: 'a module of the environment kit',
  python: 'a Python package',
  harbor: 'tasks of Harbor',
};
const nounOf = ({ kind }: SourceFacts): string => NOUNS[kind];

function hostedSource(
  deploy: DeployRow,
  { name }: Provider,
  artifact: Artifact,
  sourceDigest: string,
  commit: string | null,
): HostedSource {
  return { kind: 'hosted', protocol: null, provider: name, artifact, deployId: deploy.id, sourceDigest, commit };
}
