import type { Readable } from 'node:stream';
import type { SplitType } from '@palestra/protocol';
import type { Connection } from './connection.ts';
import { environmentPath, query } from './environments.ts';
import { noRetry } from './retry.ts';

export interface TaskSplitView {
  name: string;
  type: SplitType;
  num_tasks: number;
  /** Of the file. */
  bytes: number;
  content_hash: string;
}

export interface TaskSetView {
  id: string;
  state: 'draft' | 'published';
  content_hash: string | null;
  created_at: string;
  published_at: string | null;
  /** Versions of the environment that have these tasks. */
  versions: number[];
  splits: TaskSplitView[];
}

/** A file of tasks: one a line or row. */
export interface TaskFile {
  split: string;
  /** Left out: its name, where that is a type, else validation. */
  type?: SplitType;
  format: 'jsonl' | 'parquet';
  /** What errors call it. */
  name: string;
  /** Read anew for every attempt. */
  open: () => Readable;
}

export interface PushedTasks {
  task_set: TaskSetView;
  /** Of the environment, with these tasks. */
  version: number;
  /** false: its newest version had exactly these tasks already. */
  created: boolean;
  /** Columns that meant nothing, by split. */
  ignored: Record<string, string[]>;
}

/** Tasks that are uploaded for an environment. */
export class TaskSets {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Newest first. */
  async list(environment: string): Promise<TaskSetView[]> {
    const answer = await this.#connection.json({ path: `${environmentPath(environment)}/task-sets` });
    return (answer as { task_sets: TaskSetView[] }).task_sets;
  }

  /** Makes these files, each a split, the tasks of a new version of the environment: all of them, or nothing changes. */
  async push(environment: string, files: TaskFile[], onSplit: (split: TaskSplitView) => void = () => {}): Promise<PushedTasks> {
    const sets = `${environmentPath(environment)}/task-sets`;
    const { id } = (await this.#connection.json({ method: 'POST', path: sets, retry: noRetry })) as TaskSetView;
    const ignored: Record<string, string[]> = {};
    try {
      for (const { split, type, format, name, open } of files) {
        const path = `${sets}/${id}/splits/${encodeURIComponent(split)}${query({ format, type, file: name })}`;
        const stored = (await this.#connection.upload({ method: 'PUT', path }, open)) as TaskSplitView & { ignored_columns: string[] };
        if (stored.ignored_columns.length > 0) ignored[split] = stored.ignored_columns;
        onSplit(stored);
      }
    } catch (error) {
      await this.#connection.json({ method: 'DELETE', path: `${sets}/${id}`, retry: noRetry }).catch(() => {});
      throw error;
    }
    const published = await this.#connection.json({ method: 'POST', path: `${sets}/${id}/publish`, retry: noRetry });
    return { ...(published as Omit<PushedTasks, 'ignored'>), ignored };
  }
}
