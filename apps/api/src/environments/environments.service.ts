import type { BlobStore } from '@palestra/blobs';
import { BLOB_STORE } from '../platform/tokens.ts';
import { Inject, Injectable } from '@nestjs/common';
import {
  type CreateEnvironment,
  type CreateVersion,
  type EnvironmentDetails,
  type EnvironmentDiscoveryView,
  type EnvironmentList,
  type EnvironmentListQuery,
  type EnvironmentReport,
  type EnvironmentVersionList,
  type EnvironmentVersionView,
  type EnvironmentView,
  errorCatalogue,
  type ErrorCode,
  PalestraError,
  type StoredReport,
  type TaskPageQuery,
  type TaskPageView,
  type UpdateEnvironment,
} from '@palestra/protocol';
import type { Backend, Caller } from '@palestra/session';
import { Prisma } from '../platform/generated/prisma/client.ts';
import { BackendPool } from './backend.pool.ts';
import { discover, DiscoveryService, withDeadline } from './discovery.service.ts';
import { EnvironmentAccess, mayManage } from './environment.access.ts';
import { RegistryDirectory } from './environment-directory.ts';
import { presentEnvironment, presentVersion } from './environment.presenter.ts';
import {
  type EnvironmentRecord,
  type EnvironmentSource,
  type HostedSource,
  storedDiscovery,
  type VersionRecord,
} from './environment.record.ts';
import { EnvironmentRepository } from './environment.repository.ts';
import { hostingPrefix } from './hosting/logs/log-archive.ts';
import { TaskSetRepository, withTaskSet } from './task-sets/task-set.repository.ts';

/** Deadline for the discovery of a new server. */
const VALIDATION_DEADLINE_MS = 20_000;

/** Errors that are returned unchanged, because they do not depend on the responses of the server. */
const UNCHANGED_ERRORS = new Set<ErrorCode>(['commands_not_allowed', 'upstream_address_refused', 'answer_too_large']);

/** The registry of environments. */
@Injectable()
export class EnvironmentsService {
  constructor(
    @Inject(EnvironmentAccess) private readonly access: EnvironmentAccess,
    @Inject(EnvironmentRepository) private readonly repository: EnvironmentRepository,
    @Inject(BackendPool) private readonly backends: BackendPool,
    @Inject(DiscoveryService) private readonly discovery: DiscoveryService,
    @Inject(RegistryDirectory) private readonly directory: RegistryDirectory,
    @Inject(TaskSetRepository) private readonly taskSets: TaskSetRepository,
    // The seventh parameter: an environment's files are deleted with it.
    @Inject(BLOB_STORE) private readonly blobs: BlobStore,
  ) {}

  async list(caller: Caller | undefined, query: EnvironmentListQuery): Promise<EnvironmentList> {
    const { records, total } = await this.repository.list(caller, query);
    return { environments: await Promise.all(records.map((record) => this.#present(record, caller))), total };
  }

  async get(caller: Caller | undefined, owner: string, name: string): Promise<EnvironmentDetails> {
    const environment = await this.access.visible(caller, owner, name);
    const [report, discovered, isLinked] = await Promise.all([
      this.repository.report(environment),
      this.#withDiscovery(environment),
      this.repository.hasGitLink(environment.id),
    ]);
    const canManage = mayManage(environment, caller) && caller!.scopes.includes('environments');
    const details = { report, can_manage: canManage, deployed: environment.hosting !== null };
    // orwd changes and unlinks only what has a connection.
    return { ...(await this.#present(discovered, caller)), ...details, has_github_connection: canManage && isLinked };
  }

  async create(caller: Caller, body: CreateEnvironment): Promise<EnvironmentView> {
    const owner = await this.access.namespace(caller, body.namespace ?? null);
    // A discovery takes seconds, so check for a taken name before it.
    if ((await this.repository.find(owner, body.name)) !== null) {
      throw new PalestraError('environment_exists', { detail: `An environment named ${owner}/${body.name} exists already.` });
    }
    const source = body.source ?? null;
    const record = await this.repository.create(
      {
        orgId: caller.orgId,
        owner,
        name: body.name,
        description: body.description,
        isPrivate: body.isPrivate,
        isHarbor: body.isHarbor,
        readmeContent: body.readme ?? null,
      },
      source,
      source === null ? null : await this.#validate(source),
    );
    this.directory.invalidate();
    return this.#present(record, caller);
  }

  async update(caller: Caller, owner: string, name: string, body: UpdateEnvironment): Promise<EnvironmentView> {
    const environment = await this.access.managed(caller, owner, name);
    const changes: Prisma.EnvironmentUpdateInput = {
      name: body.new_name,
      description: body.new_description,
      isPrivate: body.new_is_private,
      isHarbor: body.new_is_harbor,
      readmeContent: body.new_readme_content,
      arxivUrl: body.new_arxiv_url,
      externalGithubUrl: body.new_external_github_url,
      externalHfUrl: body.new_external_hf_url,
      ...(body.sessions !== undefined && { sessionPolicy: body.sessions ?? Prisma.DbNull }),
    };
    const updated = await this.repository.update(environment, changes);
    this.directory.invalidate(await this.repository.versionIds(environment.id));
    return this.#present(updated, caller);
  }

  async addVersion(caller: Caller, owner: string, name: string, body: CreateVersion): Promise<EnvironmentVersionView> {
    const environment = await this.access.managed(caller, owner, name);
    const taskSetId = body.task_set === undefined ? (environment.versions[0]?.taskSetId ?? null) : body.task_set;
    const taskSet = taskSetId === null ? null : await this.taskSets.published(environment.id, taskSetId);
    const found = await this.#validate(body.source);
    const discovery = taskSet === null ? found : withTaskSet(found, taskSet);
    const version = await this.repository.addVersion(environment.id, body.source, discovery, taskSetId);
    this.directory.invalidate();
    return { id: version.id, number: version.number, source: body.source, created_at: version.createdAt.toISOString() };
  }

  /** Replaces the report of a version: the newest one by default. */
  async setReport(caller: Caller, owner: string, name: string, report: EnvironmentReport, number?: number): Promise<StoredReport> {
    const environment = await this.access.managed(caller, owner, name);
    const newest = this.#version(environment);
    const version = number ?? newest.number;
    const id = version === newest.number ? newest.id : await this.repository.versionId(environment.id, version);
    if (id === null)
      throw new PalestraError('deployment_not_found', { detail: `Deployment not found. ${owner}/${name} has no version ${version}.` });
    await this.repository.saveReport(environment, id, report);
    return { version };
  }

  async versions(caller: Caller | undefined, owner: string, name: string): Promise<EnvironmentVersionList> {
    const environment = await this.access.visible(caller, owner, name);
    const versions = await this.repository.versions(environment.id);
    return { versions: versions.map((version) => presentVersion(version, mayManage(environment, caller))) };
  }

  async delete(caller: Caller, owner: string, name: string): Promise<{ deleted: true; owner: string; name: string }> {
    const environment = await this.access.managed(caller, owner, name);
    const versionIds = await this.repository.versionIds(environment.id);
    await this.blobs.deletePrefix(`environments/${environment.id}/`);
    await this.blobs.deletePrefix(hostingPrefix(environment.id));
    await this.repository.delete(environment.id);
    this.directory.invalidate(versionIds);
    for (const versionId of versionIds) {
      this.discovery.forget(versionId);
      this.backends.retire(versionId);
    }
    return { deleted: true, owner: environment.owner, name: environment.name };
  }

  async variants(caller: Caller | undefined, owner: string, name: string): Promise<{ id: string; name: string }[]> {
    const environment = await this.access.visible(caller, owner, name);
    if (environment.versions[0] === undefined) return [];
    const { variants } = await this.#discover(environment);
    return variants.map((variant) => ({ id: `${environment.id}/${variant.name}`, name: variant.name }));
  }

  /** The Open Reward Standard has no request for it, so no environment can declare its secrets. */
  async requiredSecrets(caller: Caller | undefined, owner: string, name: string): Promise<{ secrets: string[] }> {
    await this.access.visible(caller, owner, name);
    return { secrets: [] };
  }

  async discoveryOf(caller: Caller | undefined, owner: string, name: string): Promise<EnvironmentDiscoveryView> {
    const environment = await this.access.visible(caller, owner, name);
    return this.#discover(environment);
  }

  async tasks(caller: Caller | undefined, owner: string, name: string, query: TaskPageQuery): Promise<TaskPageView> {
    const environment = await this.access.visible(caller, owner, name);
    const backend = this.#backend(environment);
    const variant = query.variant ?? null;
    const [total, specs] = await withDeadline((signal) =>
      Promise.all([
        backend.numTasks(variant, query.split, signal),
        backend.taskRange(variant, query.split, query.start, query.start + query.limit, signal),
      ]),
    );
    const tasks = specs.map((task_spec, offset) => ({ index: query.start + offset, task_spec }));
    return { split: query.split, start: query.start, total, tasks };
  }

  async #present(record: EnvironmentRecord, caller: Caller | undefined): Promise<EnvironmentView> {
    return presentEnvironment(record, await this.backends.status(record), mayManage(record, caller));
  }

  /** The record with its discovery, which is requested if it is missing. An unreachable server changes nothing. */
  async #withDiscovery(record: EnvironmentRecord): Promise<EnvironmentRecord> {
    const version = record.versions[0];
    if (version === undefined || storedDiscovery(version) !== null) return record;
    const discovery = await this.discovery.of(version, this.backends.of(record, version)).catch(() => null);
    if (discovery === null) return record;
    return { ...record, versions: [{ ...version, discovery: discovery as unknown as VersionRecord['discovery'] }] };
  }

  #backend(environment: EnvironmentRecord): Backend {
    return this.backends.of(environment, this.#version(environment));
  }

  #version(environment: EnvironmentRecord): VersionRecord {
    const version = environment.versions[0];
    if (version === undefined) {
      throw new PalestraError('deployment_not_found', {
        detail: `Deployment not found. ${environment.owner}/${environment.name} has no server yet.`,
      });
    }
    return version;
  }

  #discover(environment: EnvironmentRecord): Promise<EnvironmentDiscoveryView> {
    return this.discovery.of(this.#version(environment), this.#backend(environment));
  }

  #discoverBundled(name: string): Promise<EnvironmentDiscoveryView> {
    const backend = this.backends.bundledBackend(name);
    if (backend === null)
      throw new PalestraError('invalid_request', {
        detail: `source.name: this server runs no bundled environment ${JSON.stringify(name)}.`,
      });
    return withDeadline((signal) => discover(backend, signal), VALIDATION_DEADLINE_MS);
  }

  /** Runs the discovery of a new server. Throws the reason if it fails. */
  async #validate(source: Exclude<EnvironmentSource, HostedSource>): Promise<EnvironmentDiscoveryView> {
    if (source.kind === 'bundled') return this.#discoverBundled(source.name);
    const backend = this.backends.probe(source);
    try {
      return await withDeadline((signal) => discover(backend, signal), VALIDATION_DEADLINE_MS);
    } catch (error) {
      if (!(error instanceof PalestraError) || UNCHANGED_ERRORS.has(error.code)) throw error;
      const field = source.url === undefined ? 'source.command' : 'source.url';
      throw new PalestraError('invalid_request', {
        // The detail must not show the responses of any address that a caller enters.
        detail: `${field}: no usable environment server found. ${error.relayed ? errorCatalogue[error.code].text : error.message}`,
        cause: error,
      });
    } finally {
      await backend.close();
    }
  }
}
