import { splitNameSchema } from '@palestra/protocol/schemas';
import type { Readable } from 'node:stream';
import { Inject, Injectable } from '@nestjs/common';
import { PalestraError, type PublishedTaskSet, type SplitType, type SplitUpload, type TaskSetView } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { UntrustedWork } from '../../platform/untrusted-work/untrusted-work.ts';
import { TenantConcurrency, Semaphore } from '../../platform/tenant-concurrency.ts';
import { EnvironmentAccess, mayManage } from '../environment.access.ts';
import { RegistryDirectory } from '../environment-directory.ts';
import { type EnvironmentRecord, sourceOf, storedDiscovery } from '../environment.record.ts';
import { EnvironmentRepository } from '../environment.repository.ts';
import type { TaskFileSummary, TaskFileInput } from './task-file.work.ts';
import { readRows } from './task-rows.file.ts';
import { MAX_BYTES, MAX_TASKS, MAX_TEXT_BYTES } from './task-set-limits.ts';
import { TaskSetRepository, type TaskSetRecord, withTaskSet } from './task-set.repository.ts';
import { withSpooled } from './upload-spool.ts';

/** Each upload has a file on disk. */
const UPLOADS = { owner: 4, all: 64 };
/** Storing a file holds a connection of the PostgreSQL pool, so only a few are stored at the same time. */
const STORING = 3;

/** Uploads tasks of an environment: a draft, a file for each split, then publication with a new version of the environment. */
@Injectable()
export class TaskSetsService {
  readonly #uploads = new TenantConcurrency('uploads of tasks', UPLOADS);
  readonly #storing = new Semaphore(STORING);

  constructor(
    @Inject(EnvironmentAccess) private readonly access: EnvironmentAccess,
    @Inject(EnvironmentRepository) private readonly environments: EnvironmentRepository,
    @Inject(TaskSetRepository) private readonly taskSets: TaskSetRepository,
    @Inject(RegistryDirectory) private readonly directory: RegistryDirectory,
    @Inject(UntrustedWork) private readonly untrustedWork: UntrustedWork,
  ) {}

  async list(caller: Caller | undefined, owner: string, name: string): Promise<{ task_sets: TaskSetView[] }> {
    const environment = await this.access.visible(caller, owner, name);
    const sets = await this.taskSets.list(environment.id, mayManage(environment, caller));
    return { task_sets: sets.map(presentTaskSet) };
  }

  async createDraft(caller: Caller, owner: string, name: string): Promise<TaskSetView> {
    const environment = await this.access.managed(caller, owner, name);
    requireServer(environment);
    return presentTaskSet(await this.taskSets.createDraft(environment.id));
  }

  async putSplit(
    caller: Caller,
    target: { owner: string; name: string; id: string; split: string },
    { format, type, file }: SplitUpload,
    body: Readable | undefined,
  ) {
    const environment = await this.access.managed(caller, target.owner, target.name);
    const draft = await this.taskSets.find(environment.id, target.id);
    const split = splitNameSchema.safeParse(target.split);
    if (!split.success) throw new PalestraError('invalid_request', { detail: split.error.issues[0]!.message });
    if (draft.contentHash !== null) throw new PalestraError('task_set_published');
    if (body === undefined) throw new PalestraError('invalid_request', { detail: 'The body must be a file of tasks.' });
    const fileName = file ?? split.data;
    const kind = type ?? typeOfName(split.data);
    const store = async (path: string, bytes: number) => {
      const output = `${path}.rows`;
      const input: TaskFileInput = { path, format, name: fileName, output, maxRows: MAX_TASKS, maxBytes: MAX_TEXT_BYTES };
      const module = new URL('./task-file.work.js', import.meta.url);
      const read = await this.untrustedWork.run<TaskFileSummary>({ module, input, owner: caller.orgId, lane: 'file' });
      const stored = { name: split.data, type: kind, bytes, file: fileName, read };
      await this.#storing.use(() => this.taskSets.putSplit(draft.id, stored, readRows(output)));
      return {
        name: split.data,
        type: kind,
        num_tasks: read.numTasks,
        bytes,
        content_hash: read.contentHash,
        ignored_columns: read.ignored,
      };
    };
    return this.#uploads.use(caller.orgId, () => withSpooled(body, MAX_BYTES, store));
  }

  async publish(caller: Caller, owner: string, name: string, id: string): Promise<PublishedTaskSet> {
    const environment = await this.access.managed(caller, owner, name);
    requireServer(environment);
    await this.taskSets.find(environment.id, id);
    const set = await this.taskSets.publish(environment.id, id);
    // Read again, because a version may have been added since.
    const now = await this.access.managed(caller, owner, name);
    const newest = now.versions[0]!;
    if (newest.taskSetId === set.id) return { task_set: presentTaskSet(set), version: newest.number, created: false };
    const known = storedDiscovery(newest);
    const discovery = known === null ? null : withTaskSet(known, set);
    const version = await this.environments.addVersion(environment.id, sourceOf(newest), discovery, set.id);
    this.directory.invalidate();
    return { task_set: presentTaskSet(await this.taskSets.find(environment.id, set.id)), version: version.number, created: true };
  }

  async delete(caller: Caller, owner: string, name: string, id: string): Promise<{ deleted: true; id: string }> {
    const environment = await this.access.managed(caller, owner, name);
    const set = await this.taskSets.find(environment.id, id);
    await this.taskSets.delete(set);
    return { deleted: true, id: set.id };
  }
}

function requireServer({ owner, name, versions }: EnvironmentRecord): void {
  if (versions.length === 0)
    throw new PalestraError('deployment_not_found', {
      detail: `Deployment not found. ${owner}/${name} has no server yet. Add one, because tasks belong to a version and a version to a server.`,
    });
}

/** The rule of OpenEnv's Task API for bare names (docs/reference/openenv.md#task-api). */
const typeOfName = (name: string): SplitType => (name === 'train' || name === 'test' ? name : 'validation');

function presentTaskSet(set: TaskSetRecord): TaskSetView {
  return {
    id: set.id,
    state: set.contentHash === null ? 'draft' : 'published',
    content_hash: set.contentHash,
    created_at: set.createdAt.toISOString(),
    published_at: set.publishedAt?.toISOString() ?? null,
    versions: set.versions.map(({ number }) => number),
    splits: set.splits.map(({ name, type, numTasks, bytes, contentHash }) => ({
      name,
      type: type as SplitType,
      num_tasks: numTasks,
      bytes: Number(bytes),
      content_hash: contentHash,
    })),
  };
}
