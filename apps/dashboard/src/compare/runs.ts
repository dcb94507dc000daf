import { PROVENANCES, type RunConfig, type RunSeries, type RunSummary, type RunView } from '@palestra/protocol';

/** A run of a comparison with its data. The first run is the reference. */
export interface ComparedRun {
  run: RunView;
  /** `A` to `D`. */
  letter: string;
  /** A colour of tokens.css. */
  hue: string;
  /** The part of the name that differs from the other runs. */
  short: string;
  summary: RunSummary;
  series: RunSeries;
  /** Null for guests, whom a link shows no settings. */
  config: RunConfig | null;
}

export interface Setting {
  name: string;
  /** By run. */
  values: string[];
}

const ABSENT = 'not set';
const names = (counts: Record<string, unknown>): string => Object.keys(counts).toSorted().join(', ') || ABSENT;
const settingNames: Record<string, string> = {
  n: 'Samples per prompt (setting)',
  batchSize: 'Prompts per step (setting)',
  maxTurns: 'Maximum turns of a rollout',
  successThreshold: 'Success threshold',
  nonterminalReward: 'Reward added without a terminal state',
  minReward: 'Minimum trained reward',
  maxReward: 'Maximum trained reward',
  rewardReduce: 'Reduction to the trained reward',
  source: 'Source (setting)',
  nameRegex: 'Regex for rollout names',
};

/** The success rule of each environment. */
export const thresholds = ({ success }: RunConfig): Map<string, string> =>
  new Map(
    success.map(({ environment, variant, threshold, strict }) => [
      `${environment ?? 'No environment'}${variant === null ? '' : ` (${variant})`}`,
      `reward ${strict ? '>' : '≥'} ${threshold}`,
    ]),
  );

/** Everything besides the policy that can make two runs differ. */
export function settingsOf(compared: readonly Pick<ComparedRun, 'run' | 'summary' | 'config'>[]): Setting[] {
  const runs = compared.flatMap(({ config, ...rest }) => (config === null ? [] : [{ ...rest, config }]));
  if (runs.length < compared.length) return [];
  const of = (name: string, value: (run: (typeof runs)[number]) => string): Setting => ({ name, values: runs.map(value) });
  const union = (keys: (run: (typeof runs)[number]) => Iterable<string>) => [...new Set(runs.flatMap((run) => [...keys(run)]))].toSorted();
  const tables = new Map(runs.map((run) => [run, thresholds(run.config)]));
  return [
    of('Model', ({ config }) => names(config.models)),
    of('Environments', ({ config }) => [...new Set(config.success.map(({ environment }) => environment ?? 'none'))].toSorted().join(', ')),
    of('Rollouts per group', ({ summary }) =>
      summary.groups === 0 ? ABSENT : String(Number((summary.rollouts / summary.groups).toFixed(2))),
    ),
    ...union((run) => tables.get(run)!.keys()).map((env) =>
      of(`Success in ${env}`, (run) => tables.get(run)!.get(env) ?? 'not in this run'),
    ),
    of('Uploaded by', ({ config }) => names(config.sources)),
    of('Phase', ({ summary }) => summary.phase ?? ABSENT),
    of('Lens', ({ summary }) => summary.lens),
    of('Denominator', ({ summary }) => summary.den ?? 'the rule of the trainer'),
    of('Provenance of steps', ({ summary }) => weakestProvenance(summary.provenance['step'])),
    of('Provenance of rewards', ({ summary }) => weakestProvenance(summary.provenance['reward'])),
    ...union(({ config }) => Object.keys(config.settings)).map((key) =>
      of(settingNames[key] ?? key, ({ config }) => {
        const value = config.settings[key];
        return value === undefined || value === null ? ABSENT : typeof value === 'object' ? JSON.stringify(value) : String(value);
      }),
    ),
    of('Normaliser version', ({ config }) => names(config.normaliser.rows)),
    of('Retention', ({ config }) => (config.retention_days === null ? 'setting of the organisation' : `${config.retention_days} days`)),
  ];
}

/** The weakest provenance of a field. */
function weakestProvenance(counts: Partial<Record<string, number>> | undefined): string {
  const weakest = PROVENANCES.slice(1).find((one) => (counts?.[one] ?? 0) > 0);
  return weakest ?? 'unknown';
}

const isAlike = ({ values }: Setting): boolean => values.every((value) => value === values[0]);

/** Splits settings into those that differ and those that are equal. */
export function differing(settings: readonly Setting[]): { differ: Setting[]; alike: Setting[] } {
  return { differ: settings.filter((one) => !isAlike(one)), alike: settings.filter(isAlike) };
}

/** One sentence per difference that makes figures of these runs hard to compare. */
export function comparisonWarnings(
  runs: readonly Pick<ComparedRun, 'run' | 'summary' | 'config' | 'letter'>[],
  settings: readonly Setting[],
): string[] {
  const difference = (name: string) => {
    const one = settings.find((setting) => setting.name === name);
    return one && !isAlike(one) ? runs.map(({ letter }, i) => `${letter} ${one.values[i]}`).join(', ') : null;
  };
  const found: string[] = [];
  const phase = difference('Phase');
  if (phase) found.push(`Different phases: ${phase}. Choose one above.`);
  const lens = difference('Lens');
  if (lens) found.push(`Different lenses: ${lens}.`);
  const den = difference('Denominator');
  if (den) found.push(`Different denominators: ${den}.`);
  for (const one of settings.filter(({ name, values }) => name.startsWith('Success in ') && !values.includes('not in this run')))
    if (!isAlike(one)) found.push(`${one.name} differs: ${runs.map(({ letter }, i) => `${letter} ${one.values[i]}`).join(', ')}.`);
  const environments = difference('Environments');
  if (environments) found.push(`Different environments: ${environments}.`);
  const steps = difference('Provenance of steps');
  if (steps) found.push(`Different provenance of steps: ${steps}.`);
  const size = difference('Rollouts per group');
  if (size) found.push(`Different group sizes: ${size}. Compare pass@k of the same k, not of the largest k.`);
  return found;
}
