import { createHash } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import type { TaskSource } from '@palestra/session';
import { isUuid } from '@palestra/kit';
import { type EnvironmentDiscoveryView, PalestraError, type SplitType } from '@palestra/protocol';
import { Database } from '../../platform/database/database.ts';
import type { Prisma } from '../../platform/generated/prisma/client.ts';
import { inTransaction } from '../../platform/database/transaction.ts';
import { StoredTaskSource } from './stored-task-source.ts';
import type { TaskFileSummary } from './task-file.work.ts';
import { taskFileError } from './task-record.ts';
import { storeRows } from './task-row.sql.ts';
import type { ParsedTaskRow } from './task-rows.file.ts';
import { MAX_BYTES, MAX_TASKS } from './task-set-limits.ts';

const withSplits = {
  splits: { orderBy: { id: 'asc' } },
  versions: { select: { number: true }, orderBy: { number: 'asc' } },
} satisfies Prisma.TaskSetInclude;
export type TaskSetRecord = Prisma.TaskSetGetPayload<{ include: typeof withSplits }>;

export interface NewSplit {
  name: string;
  type: SplitType;
  /** Size of the file. */
  bytes: number;
  /** The file name in errors. */
  file: string;
  read: TaskFileSummary;
}

/** Age at which an unfinished draft is deleted. */
const DRAFT_LIFE_MS = 24 * 3_600_000;

/** Task sets, their splits and rows. One request at a time writes a draft; a published set never changes. */
@Injectable()
export class TaskSetRepository {
  constructor(@Inject(Database) private readonly database: Database) {}

  source(taskSetId: string): TaskSource {
    return new StoredTaskSource(this.database, taskSetId);
  }

  /** Newest first. */
  async list(environmentId: string, withDrafts: boolean): Promise<TaskSetRecord[]> {
    return this.database.prisma.taskSet.findMany({
      where: { environmentId, ...(withDrafts ? {} : { contentHash: { not: null } }) },
      include: withSplits,
      orderBy: { createdAt: 'desc' },
      take: 1_000,
    });
  }

  /** Throws `task_set_not_found`. */
  async find(environmentId: string, id: string): Promise<TaskSetRecord> {
    const found = isUuid(id) ? await this.database.prisma.taskSet.findFirst({ where: { id, environmentId }, include: withSplits }) : null;
    if (found === null) throw new PalestraError('task_set_not_found');
    return found;
  }

  /** As `find`, but also throws for a draft. */
  async published(environmentId: string, id: string): Promise<TaskSetRecord> {
    const found = await this.find(environmentId, id);
    if (found.contentHash === null)
      throw new PalestraError('task_set_not_found', { detail: 'This task set is a draft. Publish it first.' });
    return found;
  }

  /** Also deletes abandoned drafts of the environment. */
  async createDraft(environmentId: string): Promise<TaskSetRecord> {
    const createdAt = { lt: new Date(Date.now() - DRAFT_LIFE_MS) };
    await this.database.prisma.taskSet.deleteMany({ where: { environmentId, contentHash: null, createdAt } });
    return this.database.prisma.taskSet.create({ data: { environmentId }, include: withSplits });
  }

  /** Stores the rows as a split of the draft and replaces a split of the same name. Throws `invalid_task_file` and then stores nothing. */
  async putSplit(id: string, split: NewSplit, rows: AsyncIterable<ParsedTaskRow>): Promise<void> {
    await inTransaction(this.database.pool, async (client) => {
      await lockDraft(client, id);
      await client.query('DELETE FROM task_splits WHERE task_set_id = $1 AND name = $2', [id, split.name]);
      const { rows: others } = await client.query<{ tasks: number; bytes: number }>(
        'SELECT coalesce(sum(num_tasks), 0)::int AS tasks, coalesce(sum(bytes), 0)::float8 AS bytes FROM task_splits WHERE task_set_id = $1',
        [id],
      );
      const { tasks, bytes } = others[0]!;
      if (bytes + split.bytes > MAX_BYTES)
        throw taskFileError(split.file, null, `with this file the task set is larger than ${MAX_BYTES / 1024 ** 3} GiB`);
      if (tasks + split.read.numTasks > MAX_TASKS)
        throw taskFileError(split.file, null, `with this file the task set has more than ${MAX_TASKS} tasks`);
      const { rows: inserted } = await client.query<{ id: number }>(
        `INSERT INTO task_splits (task_set_id, name, type, num_tasks, bytes, content_hash) VALUES ($1, $2, $3, $4, $5, $6) RETURNING id`,
        [id, split.name, split.type, split.read.numTasks, split.bytes, split.read.contentHash],
      );
      await storeRows(client, inserted[0]!.id, rows, split.file);
    });
  }

  /** Publishes the draft. If a published set has the same content, deletes the draft and returns that set. */
  async publish(environmentId: string, id: string): Promise<TaskSetRecord> {
    const published = await inTransaction(this.database.pool, async (client) => {
      // The lock on the environment's row serialises publishing.
      await client.query('SELECT FROM environments WHERE id = $1 FOR UPDATE', [environmentId]);
      await lockDraft(client, id);
      const { rows: splits } = await client.query<{ name: string; type: string; content_hash: string }>(
        'SELECT name, type, content_hash FROM task_splits WHERE task_set_id = $1 ORDER BY id',
        [id],
      );
      if (splits.length === 0)
        throw new PalestraError('invalid_request', { detail: 'This task set has no split yet. Upload a file for a split first.' });
      const contentHash = hashOf(splits);
      const { rows: same } = await client.query<{ id: string }>(
        'SELECT id FROM task_sets WHERE environment_id = $1 AND content_hash = $2',
        [environmentId, contentHash],
      );
      if (same[0] === undefined)
        await client.query('UPDATE task_sets SET content_hash = $2, published_at = now() WHERE id = $1', [id, contentHash]);
      else await client.query('DELETE FROM task_sets WHERE id = $1', [id]);
      return same[0]?.id ?? id;
    });
    return this.find(environmentId, published);
  }

  /** Throws `task_set_in_use` while a version uses these tasks. */
  async delete({ id, versions }: TaskSetRecord): Promise<void> {
    const inUse = () =>
      new PalestraError('task_set_in_use', {
        detail: `Versions of this environment use these tasks (${versions.map(({ number }) => number).join(', ')}), and versions cannot change.`,
      });
    if (versions.length > 0) throw inUse();
    await this.database.pool.query('DELETE FROM task_sets WHERE id = $1', [id]);
  }
}

async function lockDraft(
  client: { query(text: string, values: unknown[]): Promise<{ rows: { content_hash: string | null }[] }> },
  id: string,
) {
  const { rows } = await client.query('SELECT content_hash FROM task_sets WHERE id = $1 FOR UPDATE', [id]);
  if (rows[0] === undefined) throw new PalestraError('task_set_not_found');
  if (rows[0].content_hash !== null) throw new PalestraError('task_set_published');
}

/** Independent of the order of splits. */
function hashOf(splits: { name: string; type: string; content_hash: string }[]): string {
  const parts = splits.map(({ name, type, content_hash: hash }) => JSON.stringify([name, type, hash])).toSorted();
  return createHash('sha256').update(parts.join('\n')).digest('hex');
}

/** The last discovery of the server, with the splits of the task set instead of its own. */
export function withTaskSet(discovery: EnvironmentDiscoveryView, { splits }: TaskSetRecord): EnvironmentDiscoveryView {
  const uploaded = splits.map(({ name, type, numTasks }) => ({ name, type: type as SplitType, num_tasks: numTasks }));
  return { ...discovery, variants: discovery.variants.map((variant) => ({ ...variant, splits: uploaded })) };
}
