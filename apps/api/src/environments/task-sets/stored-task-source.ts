import type { TaskPosition, TaskSource } from '@palestra/session';
import { SingleFlight } from '@palestra/kit';
import { type Message, PalestraError, type TaskSpec } from '@palestra/protocol';
import { retryDatabase } from '../../platform/database/database-retry.ts';
import type { Database } from '../../platform/database/database.ts';
import { findBySpec, findByTaskId, readPrompt, readSpecs, readSplits, type StoredSplit } from './task-row.sql.ts';

/** A published task set in the database. It cannot change, so its splits are read once; tasks are read on request. */
export class StoredTaskSource implements TaskSource {
  readonly #database: Database;
  readonly #taskSetId: string;
  readonly #reading = new SingleFlight<StoredSplit[]>();
  #splits: StoredSplit[] | null = null;

  constructor(database: Database, taskSetId: string) {
    this.#database = database;
    this.#taskSetId = taskSetId;
  }

  async splits(): Promise<StoredSplit[]> {
    this.#splits ??= await this.#reading.do('splits', () => retryDatabase(() => readSplits(this.#database.pool, this.#taskSetId)));
    return this.#splits;
  }

  async specs(split: string, start: number, stop: number): Promise<TaskSpec[]> {
    const id = await this.#idOf(split);
    return retryDatabase(() => readSpecs(this.#database.pool, id, start, stop));
  }

  async prompt({ split, index }: TaskPosition): Promise<Message[] | null> {
    const id = await this.#idOf(split);
    return retryDatabase(() => readPrompt(this.#database.pool, id, index));
  }

  find(spec: TaskSpec): Promise<TaskPosition | null> {
    return retryDatabase(() => findBySpec(this.#database.pool, this.#taskSetId, spec));
  }

  findById(id: string): Promise<TaskPosition | null> {
    return retryDatabase(() => findByTaskId(this.#database.pool, this.#taskSetId, id));
  }

  async #idOf(split: string): Promise<number> {
    const found = (await this.splits()).find(({ name }) => name === split);
    if (found === undefined) throw new PalestraError('invalid_split');
    return found.id;
  }
}
