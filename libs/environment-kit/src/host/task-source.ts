import { PalestraError, type TaskSpec } from '@palestra/protocol';
import { SingleFlight } from '@palestra/kit';
import type { Environment } from '../definition.ts';

/** The tasks of an environment, listed or by index. Lists are loaded once. */
export class TaskSource {
  readonly #environment: Environment;
  readonly #lists = new Map<string, readonly TaskSpec[]>();
  readonly #loading = new SingleFlight<readonly TaskSpec[]>();

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  async all(split: string): Promise<readonly TaskSpec[]> {
    this.#check(split);
    const list = await this.#list(split);
    if (!list) throw new PalestraError('tasks_not_listable');
    return list;
  }

  async count(split: string): Promise<number> {
    this.#check(split);
    const list = await this.#list(split);
    return list ? list.length : this.#environment.numTasks!(split);
  }

  /** A negative index counts from the end of a list. Environments with tasks by index handle it themselves. */
  async at(split: string, index: number): Promise<TaskSpec> {
    this.#check(split);
    const list = await this.#list(split);
    if (!list) {
      try {
        return await this.#environment.task!(split, index);
      } catch (error) {
        if (error instanceof RangeError) throw new PalestraError('invalid_index', { cause: error });
        throw error;
      }
    }
    const task = list.at(index);
    if (task === undefined) throw new PalestraError('invalid_index');
    return task;
  }

  /** Follows Python's slices: null is the respective end, negative values count from the end, values are clamped, `stop` is exclusive. */
  async range(split: string, start: number | null, stop: number | null): Promise<TaskSpec[]> {
    const total = await this.count(split);
    const clamp = (index: number) => Math.min(index < 0 ? Math.max(total + index, 0) : index, total);
    const [from, to] = [clamp(start ?? 0), clamp(stop ?? total)];
    const list = await this.#list(split);
    if (list) return list.slice(from, to);
    const tasks: TaskSpec[] = [];
    for (let index = from; index < to; index += 1) tasks.push(await this.at(split, index));
    return tasks;
  }

  #check(split: string): void {
    if (!this.#environment.splits.some(({ name }) => name === split)) throw new PalestraError('invalid_split');
  }

  async #list(split: string): Promise<readonly TaskSpec[] | null> {
    if (!this.#environment.tasks) return null;
    const known = this.#lists.get(split);
    if (known) return known;
    return this.#loading.do(split, async () => {
      const list = await this.#environment.tasks!(split);
      this.#lists.set(split, list);
      return list;
    });
  }
}
