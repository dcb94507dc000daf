import pMap from 'p-map';
import type { PalestraClient } from '@palestra/client';
import { isObject } from '@palestra/protocol';
import { environmentName } from '../../environment-name.ts';
import { aboutRun } from '../../named-run.ts';
import { UsageError } from '../../server-settings.ts';
import { drawTasks } from './draw-tasks.ts';
import type { EpisodeId, EpisodeResult } from './episode.ts';
import { type Policy, type PolicyOptions, policyOf } from './policy.ts';
import { findRun, keyOf, type StoredEpisode, storedEpisodes } from './stored.ts';
import type { TaskChoice } from './tasks.ts';

export interface PlanOptions extends PolicyOptions {
  split?: string;
  variant?: string;
  tasks: TaskChoice;
  samples: number;
  run?: string;
  resume: boolean;
  compare?: string;
}

/** Where tasks are read. */
interface Place {
  /** `owner/name@version` */
  environment: string;
  split: string;
  variant: string | undefined;
}

/** What an evaluation plays. */
export interface Plan extends Place {
  run: string;
  /** `owner/name` */
  name: string;
  version: number | null;
  policy: Policy;
  /** Episodes that the run has. */
  stored: EpisodeResult[];
  missing: EpisodeId[];
  /** Ids of stored rollouts that are played again. */
  incomplete: string[];
  /** The member `level` of each task that has one. */
  levels: ReadonlyMap<number, string>;
}

const CONCURRENT_READS = 8;

/** Throws `UsageError` for options that cannot be played, before anything is changed. */
export async function planOf(client: PalestraClient, target: string, options: PlanOptions, signal: AbortSignal): Promise<Plan> {
  const [name, wanted] = versionOf(await environmentName(client, target));
  const policy = await policyOf(name, options);
  const { variant, samples } = options;
  const { version: newest } = await client.environments.get(name);
  const run = options.run ?? defaultRun(name, policy.name);
  const found = await findRun(client, run);
  if (found && !options.resume) throw new UsageError(`Run "${run}" exists. Pass --resume to continue it, or another --run.`);
  if (options.compare !== undefined) await aboutRun(options.compare, client.runs.get(options.compare));
  const split = await splitOf(client, name, variant, options.split);
  const earlier = found ? await storedEpisodes(client, run, { environment: name, split, variant }, signal) : [];
  const version = wanted ?? earlier.find((one) => one.version !== null)?.version ?? newest;
  assertSame(run, earlier, policy.name, version);
  const place = { environment: version === null ? name : `${name}@${version}`, split, variant };
  const tasks = await chosenTasks(client, place, options.tasks);
  // The first samples of all tasks come first, so that an interrupted run says something about each task.
  const all = Array.from({ length: samples }, (_, sample) => tasks.map((task) => ({ task, sample }))).flat();
  const known = new Map(earlier.map((one) => [keyOf(one), one]));
  const isStored = (id: EpisodeId) => known.get(keyOf(id))?.isMissing === false;
  return {
    ...place,
    run,
    name,
    version,
    policy,
    stored: all.filter(isStored).map((id) => known.get(keyOf(id))!),
    missing: all.filter((id) => !isStored(id)),
    incomplete: all.flatMap((id) => (isStored(id) ? [] : (known.get(keyOf(id))?.rollout ?? []))),
    levels: await levelsOf(client, place, tasks, signal),
  };
}

/** `owner/name@3` as the name and the version. */
function versionOf(target: string): [name: string, version: number | null] {
  const [, name, version] = /^(.*?)(?:@(\d{1,9}))?$/.exec(target)!;
  return [name!, version === undefined ? null : Number(version)];
}

function defaultRun(environment: string, policy: string): string {
  const time = new Date().toISOString().slice(0, 19).replaceAll(/[-:]/g, '').replace('T', '-');
  return `eval-${environment.split('/')[1]}-${policy.replaceAll(/[^\w.-]+/g, '-')}-${time}`;
}

async function splitOf(client: PalestraClient, environment: string, variant: string | undefined, wanted?: string): Promise<string> {
  const splits = await client.environments.splits(environment, variant);
  if (wanted !== undefined && !splits.some(({ name }) => name === wanted))
    throw new UsageError(`Unknown split "${wanted}" of ${environment}. Available: ${splits.map(({ name }) => name).join(', ')}.`);
  if (wanted !== undefined) return wanted;
  const split = splits.find(({ type }) => type === 'test') ?? splits[0];
  if (!split) throw new UsageError(`${environment} has no splits.`);
  return split.name;
}

/** Throws if the stored episodes were played by another policy or on another version: figures over both would mean nothing. */
function assertSame(run: string, stored: readonly StoredEpisode[], policy: string, version: number | null): void {
  const other = stored.find((one) => one.model !== null && one.model !== policy);
  if (other) throw new UsageError(`Run "${run}" was played by ${other.model}, not by ${policy}. Pass another --run.`);
  const old = stored.find((one) => one.version !== null && one.version !== version);
  if (old)
    throw new UsageError(`Run "${run}" was played on version ${old.version} of the environment, not on ${version}. Pass another --run.`);
}

async function chosenTasks(client: PalestraClient, { environment, split, variant }: Place, choice: TaskChoice): Promise<number[]> {
  const total = await client.environments.numTasks(environment, split, variant);
  if (total === 0) throw new UsageError(`Split "${split}" of ${environment} has no tasks.`);
  if ('count' in choice) return drawTasks(total, choice.count);
  const beyond = choice.indexes.find((index) => index >= total);
  if (beyond !== undefined)
    throw new UsageError(`Split "${split}" of ${environment} has no task ${beyond}. It has ${total} tasks, from 0.`);
  return choice.indexes;
}

async function levelsOf(client: PalestraClient, { environment, split, variant }: Place, tasks: readonly number[], signal: AbortSignal) {
  const levels = await pMap(
    tasks,
    async (index): Promise<[number, string][]> => {
      const task = await client.environments.task(environment, split, index, variant);
      const level = isObject(task) ? task['level'] : undefined;
      return typeof level === 'string' || typeof level === 'number' ? [[index, String(level).slice(0, 64)]] : [];
    },
    { concurrency: CONCURRENT_READS, signal },
  );
  return new Map(levels.flat());
}
