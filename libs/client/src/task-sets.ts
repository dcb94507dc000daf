import type {
  PublishedTaskSet,
  SplitType,
  StoredSplitView,
  TaskFileFormat,
  TaskSetList,
  TaskSetView,
  TaskSplitView,
} from '@palestra/protocol';
import type { Connection } from './connection.ts';
import { environmentPath, query } from './environments.ts';
import { noRetry } from './retry.ts';

/** A file of tasks, one per line or row. */
export interface TaskFile {
  split: string;
  /** Default: the name of the split if it is a type, else validation. */
  type?: SplitType;
  format: TaskFileFormat;
  /** The name in error messages. */
  name: string;
  /** Opens the file; called for every attempt. */
  open: () => Blob | AsyncIterable<Uint8Array>;
}

export interface PushedTasks extends PublishedTaskSet {
  /** Ignored columns, by split. */
  ignored: Record<string, string[]>;
}

/** Task sets that are uploaded for an environment. */
export class TaskSets {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Newest first. */
  async list(environment: string): Promise<TaskSetView[]> {
    const answer = await this.#connection.json({ path: `${environmentPath(environment)}/task-sets` });
    return (answer as TaskSetList).task_sets;
  }

  /** Publishes a new version of the environment with these files as splits. All files are published, or nothing changes. */
  async push(environment: string, files: TaskFile[], onSplit: (split: TaskSplitView) => void = () => {}): Promise<PushedTasks> {
    const sets = `${environmentPath(environment)}/task-sets`;
    const { id } = (await this.#connection.json({ method: 'POST', path: sets, retry: noRetry })) as TaskSetView;
    const ignored: Record<string, string[]> = {};
    try {
      for (const { split, type, format, name, open } of files) {
        const path = `${sets}/${id}/splits/${encodeURIComponent(split)}${query({ format, type, file: name })}`;
        const stored = (await this.#connection.upload({ method: 'PUT', path }, open)) as StoredSplitView;
        if (stored.ignored_columns.length > 0) ignored[split] = stored.ignored_columns;
        onSplit(stored);
      }
    } catch (error) {
      await this.#connection.json({ method: 'DELETE', path: `${sets}/${id}`, retry: noRetry }).catch(() => {});
      throw error;
    }
    const published = await this.#connection.json({ method: 'POST', path: `${sets}/${id}/publish`, retry: noRetry });
    return { ...(published as PublishedTaskSet), ignored };
  }
}
