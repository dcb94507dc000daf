import { type EnvironmentReport, isObject, type JsonObject, type TaskSpec, type ToolSpec } from '@palestra/protocol';
import type { EpisodeEvidence, Evidence, ReplayEvidence } from './evidence.ts';
import { leakedAnswers } from './leaks.ts';

type Check = EnvironmentReport['checks'][number];
type Verdict = Pick<Check, 'status' | 'detail'>;

/** Differences of sums of floating-point rewards. */
const TOLERANCE = 1e-9;
/** A random player must stay this share of the reward range below the maximum. */
const FLOOR_MARGIN = 0.1;
const DEFAULT_RANGE: readonly [number, number] = [0, 1];
const MOST_EXAMPLES = 3;

const passed = (detail: string): Verdict => ({ status: 'passed', detail });
const failed = (detail: string): Verdict => ({ status: 'failed', detail });
const skipped = (detail: string): Verdict => ({ status: 'skipped', detail });

/** The declared range of the total reward, or [0, 1], as OpenEnv's RFC 008 assumes. */
export const rewardRangeOf = ({ subject }: Pick<Evidence, 'subject'>): readonly [number, number] => subject.rewardRange ?? DEFAULT_RANGE;

/** Ids are those of OpenEnv's RFC 008 where it has the check. */
export const CHECKS: readonly { id: string; title: string; run(evidence: Evidence): Verdict }[] = [
  { id: 'runtime.task_declaration_accuracy', title: 'Every split has tasks', run: hasTasks },
  { id: 'runtime.startup', title: 'Every sampled task opens before the deadline', run: opens },
  { id: 'runtime.no_failures', title: 'No call fails', run: hasNoFailures },
  { id: 'static.disjoint_splits', title: 'Splits have no task in common', run: hasDisjointSplits },
  { id: 'runtime.tool_schemas', title: 'Tools describe all arguments', run: hasStrictSchemas },
  { id: 'runtime.input_validation', title: 'Wrong arguments are refused', run: refusesWrongInput },
  { id: 'runtime.reward_well_formed', title: 'Rewards are finite and in the declared range', run: hasWellFormedRewards },
  { id: 'runtime.episode_determinism', title: 'The same calls give the same results', run: isDeterministic },
  { id: 'runtime.episode_isolation', title: 'Concurrent episodes do not affect each other', run: isIsolated },
  { id: 'semantic.oracle_max', title: 'A solution reaches the maximum reward', run: oracleReachesMaximum },
  { id: 'semantic.floor_gap', title: 'A random player stays below the maximum', run: randomStaysBelow },
  { id: 'semantic.no_solution_leakage', title: 'Prompts and tools do not contain the answer', run: hasNoLeak },
];

export function runChecks(evidence: Evidence): Check[] {
  return CHECKS.map(({ id, title, run }) => {
    const { status, detail } = run(evidence);
    return { id, title, status, detail: detail.slice(0, 4_000) };
  });
}

function hasTasks({ splits }: Evidence): Verdict {
  const empty = splits.filter(({ tasks }) => tasks === 0).map(({ name }) => name);
  if (empty.length > 0) return failed(`No tasks in ${listOf(empty)}. Add tasks or remove the split.`);
  return passed(splits.map(({ name, tasks }) => `${name}: ${tasks}`).join(', '));
}

function opens(evidence: Evidence): Verdict {
  const { setupTimeoutMs } = evidence;
  const episodes = allEpisodes(evidence);
  if (episodes.length === 0) return failed('No task could be sampled. Add tasks.');
  const broken = episodes.filter(({ failure }) => failure?.phase === 'open');
  if (broken.length > 0)
    return failed(`${examples(broken)}. Return a prompt within ${setupTimeoutMs / 1_000} s; load large files once, not in each session.`);
  const slowest = Math.max(...episodes.map(({ setupMs }) => setupMs));
  return passed(`${episodes.length} episodes opened, the slowest in ${(slowest / 1_000).toFixed(2)} s.`);
}

function hasNoFailures(evidence: Evidence): Verdict {
  const played = allEpisodes(evidence).filter(({ failure }) => failure?.phase !== 'open');
  if (played.length === 0) return skipped('No episode opened.');
  const broken = played.filter(({ failure }) => failure !== null);
  if (broken.length === 0) return passed(`${played.length} episodes were played.`);
  return failed(`${examples(broken)}. Return a result for a mistake of the policy; throw only if the environment itself is broken.`);
}

/** Tasks are compared without keys that only number them. */
function hasDisjointSplits({ splits }: Evidence): Verdict {
  if (splits.length < 2) return skipped('There is one split.');
  const owners = new Map<string, string>();
  for (const { name, specs } of splits) {
    for (const [index, spec] of specs.entries()) {
      const content = contentOf(spec);
      const owner = owners.get(content);
      if (owner !== undefined && !owner.startsWith(`${name} `))
        return failed(
          `${name} ${index} is the same task as ${owner}. Give each task to one split, so that a test measures what was not trained.`,
        );
      if (content !== '{}') owners.set(content, `${name} ${index}`);
    }
  }
  return passed(`${owners.size} different tasks were compared.`);
}

function hasStrictSchemas(evidence: Evidence): Verdict {
  const tools = new Map<string, ToolSpec>();
  for (const { played } of allEpisodes(evidence)) for (const tool of played?.tools ?? []) tools.set(tool.name, tool);
  if (tools.size === 0) return skipped('No episode was played.');
  // Other servers ignore unknown arguments by the design of their framework.
  const isKit = evidence.subject.environment !== null;
  const problems = [...tools.values()].flatMap(({ name, description, input_schema: schema }) => [
    ...(description.trim() === '' ? [`${name} has no description`] : []),
    ...undescribed(schema).map((property) => `${name}: "${property}" has no description`),
    ...(isKit && hasOptional(schema) && schema!['additionalProperties'] !== false
      ? [`${name} ignores a misspelled optional argument; use z.strictObject`]
      : []),
  ]);
  if (problems.length === 0) return passed(`${tools.size} ${tools.size === 1 ? 'tool' : 'tools'}.`);
  return failed(`${sentence(problems)} Describe every argument with .describe("..."): the model sees nothing else.`);
}

function refusesWrongInput({ probes }: Evidence): Verdict {
  if (probes.length === 0) return skipped('No tool has arguments that can be wrong.');
  const wrong = probes.filter(({ outcome }) => outcome !== 'refused');
  if (wrong.length === 0) return passed(`${probes.length} calls with wrong arguments were refused.`);
  const texts = wrong.map(({ tool, input, outcome, text }) =>
    outcome === 'failed' ? `${tool} failed for ${JSON.stringify(input)} (${text})` : `${tool} accepted ${JSON.stringify(input)}`,
  );
  return failed(`${sentence(texts)} Declare the arguments with types, so that a mistake of the policy is refused with an explanation.`);
}

function hasWellFormedRewards(evidence: Evidence): Verdict {
  const range = rewardRangeOf(evidence);
  const played = allEpisodes(evidence).filter(({ played: episode }) => episode !== null);
  if (played.length === 0) return skipped('No episode was played.');
  const declared = evidence.subject.rewardRange !== null;
  const outside = played.filter(({ played: episode }) => !isWithin(episode!.total, range));
  if (outside.length > 0) {
    const [{ split, index, played: episode }] = outside as [EpisodeEvidence, ...EpisodeEvidence[]];
    const advice = declared ? 'Correct the rewards or rewardRange' : 'Declare rewardRange: [lowest, highest] (of a server: --reward-range)';
    return failed(`The total reward ${round(episode!.total)} of ${split} ${index} is outside of [${range.join(', ')}]. ${advice}.`);
  }
  const unscored = played.filter(({ played: episode }) => episode!.finished && episode!.calls.every(({ reward }) => reward === null));
  if (unscored.length > 0) {
    const [{ split, index }] = unscored as [EpisodeEvidence, ...EpisodeEvidence[]];
    return failed(`${split} ${index} ended without any reward. Return a reward with the call that ends an episode.`);
  }
  return passed(
    `${played.length} episodes within [${range.join(', ')}]${declared ? '' : ', the default; declare rewardRange to confirm it'}.`,
  );
}

function isDeterministic({ replays, subject }: Evidence): Verdict {
  return replayed(
    replays.filter(({ mode }) => mode === 'alone'),
    subject.environment?.deterministic === false,
    'Take all randomness from the task, or declare deterministic: false; then sessions cannot be forked or restored',
  );
}

function isIsolated({ replays, subject }: Evidence): Verdict {
  const alone = new Set(replays.filter(({ mode, difference }) => mode === 'alone' && difference !== null).map(keyOf));
  if (alone.size > 0) return skipped('The same calls give other results also without another episode.');
  return replayed(
    replays.filter(({ mode }) => mode === 'concurrent'),
    subject.environment?.deterministic === false,
    'Keep everything that changes in the state of the session, not in variables of the module',
  );
}

function replayed(replays: ReplayEvidence[], mayDiffer: boolean, advice: string): Verdict {
  if (replays.length === 0) return skipped('No episode with calls could be repeated.');
  if (mayDiffer) return skipped('The environment declares deterministic: false.');
  const different = replays.filter(({ difference }) => difference !== null);
  if (different.length > 0) return failed(`${different[0]!.split} ${different[0]!.index}: ${different[0]!.difference}. ${advice}.`);
  const broken = replays.find(({ failure }) => failure !== null);
  if (broken) return skipped(`${broken.split} ${broken.index} could not be repeated: ${broken.failure}`);
  return passed(`${replays.length} episodes were repeated.`);
}

function oracleReachesMaximum(evidence: Evidence): Verdict {
  const { oracle, oracleName, subject } = evidence;
  if (oracleName === null)
    return subject.environment === null
      ? skipped('Only a module of the kit can have solutions: solve(task) or a player named expert.')
      : skipped('The environment has no solve(task) and no player named expert. Add one to prove that its tasks can be solved.');
  const [, maximum] = rewardRangeOf(evidence);
  const played = oracle.filter(({ played: episode }) => episode !== null);
  const short = played.filter(({ played: episode }) => episode!.total < maximum - TOLERANCE);
  if (played.length < oracle.length) return failed(`${examples(oracle.filter(({ failure }) => failure !== null))}. Correct ${oracleName}.`);
  if (short.length === 0) return passed(`${oracleName} reached ${maximum} in ${played.length} tasks.`);
  const totals = short.slice(0, MOST_EXAMPLES).map(({ split, index, played: episode }) => `${split} ${index}: ${round(episode!.total)}`);
  return failed(
    `${oracleName} stayed below ${maximum} in ${short.length} of ${played.length} tasks (${totals.join(', ')}). Correct the solution, the rewards or rewardRange.`,
  );
}

function randomStaysBelow(evidence: Evidence): Verdict {
  const [lowest, highest] = rewardRangeOf(evidence);
  const totals = evidence.random.flatMap(({ played }) => (played === null ? [] : [played.total]));
  if (totals.length === 0) return skipped('No episode was played.');
  const mean = totals.reduce((sum, total) => sum + total, 0) / totals.length;
  const limit = highest - FLOOR_MARGIN * (highest - lowest);
  const text = `A random player got ${mean.toFixed(3)} on average in ${totals.length} tasks; the maximum is ${highest}.`;
  return mean <= limit ? passed(text) : failed(`${text} Random calls must not be rewarded: check what the reward compares.`);
}

function hasNoLeak({ subject, oracle }: Evidence): Verdict {
  if (subject.environment?.answersInPrompt) return skipped('The environment declares answersInPrompt.');
  const known = oracle.flatMap(({ played }) => (played === null ? [] : [played]));
  if (known.length === 0) return skipped('The answers are not known: no solve(task) or player named expert.');
  const leaks = oracle.flatMap(({ split, index, played }) =>
    played === null ? [] : leakedAnswers(played).map((answer) => `${split} ${index} shows ${JSON.stringify(answer)}`),
  );
  if (leaks.length === 0) return passed(`The final arguments of ${known.length} solutions do not occur in prompts or descriptions.`);
  return failed(
    `${sentence(leaks)} Remove the answer, or declare answersInPrompt: true if finding it in the prompt is the task, as in reading comprehension.`,
  );
}

/** Without the errors of floating-point sums. */
export const round = (value: number): number => Number(value.toFixed(6));

const allEpisodes = ({ oracle, random }: Evidence): EpisodeEvidence[] => [...oracle, ...random];
const keyOf = ({ split, index }: ReplayEvidence): string => `${split} ${index}`;
const isWithin = (value: number, [low, high]: readonly [number, number]): boolean => value >= low - TOLERANCE && value <= high + TOLERANCE;
const listOf = (items: readonly string[]): string => items.map((item) => `"${item}"`).join(', ');

/** The first few, with the number of the others. */
function sentence(items: readonly string[]): string {
  const more = items.length - MOST_EXAMPLES;
  return `${items.slice(0, MOST_EXAMPLES).join('; ')}${more > 0 ? `, and ${more} more` : ''}.`;
}

function examples(broken: EpisodeEvidence[]): string {
  return sentence(broken.map(({ split, index, failure }) => `${split} ${index}: ${failure!.text.slice(0, 300)}`)).replace(/\.+$/, '');
}

const NUMBERING = new Set(['id', 'index', 'name', 'split', 'task_id']);

function contentOf(spec: TaskSpec): string {
  const bare = isObject(spec) ? Object.fromEntries(Object.entries(spec).filter(([key]) => !NUMBERING.has(key))) : spec;
  return JSON.stringify(bare, (_, value: unknown) =>
    isObject(value) ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))) : value,
  );
}

/** Paths of properties without description, also of nested objects. */
function undescribed(schema: unknown, prefix = '', depth = 4): string[] {
  const properties = isObject(schema) && isObject(schema['properties']) ? schema['properties'] : {};
  if (depth === 0) return [];
  return Object.entries(properties).flatMap(([name, property]) => {
    const described = isObject(property) && typeof property['description'] === 'string' && property['description'].trim() !== '';
    return [...(described ? [] : [prefix + name]), ...undescribed(property, `${prefix}${name}.`, depth - 1)];
  });
}

function hasOptional(schema: JsonObject | null): boolean {
  const properties = schema !== null && isObject(schema['properties']) ? Object.keys(schema['properties']) : [];
  const required = Array.isArray(schema?.['required']) ? schema['required'] : [];
  return properties.some((name) => !required.includes(name));
}
