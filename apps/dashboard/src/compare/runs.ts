import type { RunConfig, RunSeries, RunSummary, RunView } from '@palestra/protocol';

/** A run of a comparison with what is read of it; the first one is what the others are held against. */
export interface ComparedRun {
  run: RunView;
  /** `A` to `D`. */
  letter: string;
  /** A colour of tokens.css. */
  hue: string;
  /** What tells its name from the others. */
  short: string;
  summary: RunSummary;
  series: RunSeries;
  config: RunConfig;
}

export interface Setting {
  name: string;
  /** By run. */
  values: string[];
}

const ABSENT = 'not set';
const names = (counts: Record<string, unknown>): string => Object.keys(counts).toSorted().join(', ') || ABSENT;
const settingNames: Record<string, string> = {
  n: 'Samples per prompt, as set',
  batchSize: 'Prompts per step, as set',
  maxTurns: 'Most turns of a rollout',
  successThreshold: 'Success from a reward of',
  nonterminalReward: 'Added when it did not end by itself',
  minReward: 'Trained reward at least',
  maxReward: 'Trained reward at most',
  rewardReduce: 'The trainer’s reward is the',
  source: 'Source, as set',
  nameRegex: 'Regex over rollout names',
};

/** Reward from which a rollout is a success, by environment. */
export const thresholds = ({ success }: RunConfig): Map<string, string> =>
  new Map(
    success.map(({ environment, variant, threshold, strict }) => [
      `${environment ?? 'no environment'}${variant === null ? '' : ` (${variant})`}`,
      `reward ${strict ? '>' : '≥'} ${threshold}`,
    ]),
  );

/** Everything that could make two runs differ before a policy does. */
export function settingsOf(runs: readonly Pick<ComparedRun, 'run' | 'summary' | 'config'>[]): Setting[] {
  const of = (name: string, value: (run: (typeof runs)[number]) => string): Setting => ({ name, values: runs.map(value) });
  const union = (keys: (run: (typeof runs)[number]) => Iterable<string>) => [...new Set(runs.flatMap((run) => [...keys(run)]))].toSorted();
  const tables = new Map(runs.map((run) => [run, thresholds(run.config)]));
  return [
    of('Model', ({ config }) => names(config.models)),
    of('Environments', ({ config }) => [...new Set(config.success.map(({ environment }) => environment ?? 'none'))].toSorted().join(', ')),
    of('Rollouts a group', ({ summary }) =>
      summary.groups === 0 ? ABSENT : String(Number((summary.rollouts / summary.groups).toFixed(2))),
    ),
    ...union((run) => tables.get(run)!.keys()).map((env) =>
      of(`Success in ${env}`, (run) => tables.get(run)!.get(env) ?? 'not in this run'),
    ),
    of('Sent by', ({ config }) => names(config.sources)),
    of('Phase that is counted', ({ summary }) => summary.phase ?? ABSENT),
    of('Lens', ({ summary }) => summary.lens),
    of('Rollouts that are counted', ({ summary }) => summary.den ?? 'the trainer’s own rule'),
    of('Steps are', ({ summary }) => knownAs(summary.provenance['step'])),
    of('Rewards are', ({ summary }) => knownAs(summary.provenance['reward'])),
    ...union(({ config }) => Object.keys(config.settings)).map((key) =>
      of(settingNames[key] ?? key, ({ config }) => {
        const value = config.settings[key];
        return value === undefined || value === null ? ABSENT : typeof value === 'object' ? JSON.stringify(value) : String(value);
      }),
    ),
    of('Read by normaliser version', ({ config }) => names(config.normaliser.rows)),
    of('Kept for', ({ config }) => (config.retention_days === null ? 'as the organisation has it' : `${config.retention_days} days`)),
  ];
}

/** The weakest way in which a field became known. */
function knownAs(counts: Partial<Record<string, number>> | undefined): string {
  const weakest = ['inferred', 'parsed', 'reported'].find((one) => (counts?.[one] ?? 0) > 0);
  return weakest ?? 'unknown';
}

const isAlike = ({ values }: Setting): boolean => values.every((value) => value === values[0]);

/** Those that differ, and how many do not. */
export function differing(settings: readonly Setting[]): { differ: Setting[]; alike: Setting[] } {
  return { differ: settings.filter((one) => !isAlike(one)), alike: settings.filter(isAlike) };
}

/** Why figures of these runs do not mean the same: each as a sentence. */
export function cautions(
  runs: readonly Pick<ComparedRun, 'run' | 'summary' | 'config' | 'letter'>[],
  settings: readonly Setting[],
): string[] {
  const said = (name: string) => {
    const one = settings.find((setting) => setting.name === name);
    return one && !isAlike(one) ? runs.map(({ letter }, i) => `${letter} ${one.values[i]}`).join(', ') : null;
  };
  const found: string[] = [];
  const phase = said('Phase that is counted');
  if (phase) found.push(`Different phases are counted: ${phase}. Choose one above.`);
  const lens = said('Lens');
  if (lens) found.push(`Different lenses: ${lens}.`);
  const den = said('Rollouts that are counted');
  if (den) found.push(`Different denominators: ${den}.`);
  for (const one of settings.filter(({ name, values }) => name.startsWith('Success in ') && !values.includes('not in this run')))
    if (!isAlike(one)) found.push(`${one.name} differs: ${runs.map(({ letter }, i) => `${letter} ${one.values[i]}`).join(', ')}.`);
  const environments = said('Environments');
  if (environments) found.push(`Different environments: ${environments}.`);
  const steps = said('Steps are');
  if (steps) found.push(`Steps are known in different ways: ${steps}.`);
  const size = said('Rollouts a group');
  if (size) found.push(`Groups are of different size: ${size}. pass@k of one k is comparable, “the largest k” is not.`);
  return found;
}
