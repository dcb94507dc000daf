import { groupKeyOf, type KnownPhase } from '../fill-rules/group-key.ts';
import type { RunSettings } from '../provenance/run-settings.ts';
import { type ArrivalLine, type Burst, burstsOf, evaluationBursts, longGaps, modalCount } from './bursts.ts';
import { cutWaves, type WaveRule, type Waves } from './waves.ts';

/** A rollout without a reported or parsed step. */
export interface Arrival {
  id: string;
  taskKey: string | null;
  /** First event, milliseconds since the epoch, by the clock of the server. */
  receivedAt: number;
  /** Reported or parsed phase. null: not known; then a burst with an unusual sample count counts as an evaluation. */
  phase: KnownPhase | null;
}

export interface InferredArrival {
  /** Number of the training wave, from 0; for an evaluation that of the last started training wave. null: unknown. */
  step: number | null;
  /** Arrival window: the wave, also if its confidence is too low for a step. Training and evaluation count separately. */
  window: number;
  /** How often its task occurred before; null without a task. */
  visit: number | null;
  /** `groupKeyOf` by step or else by visit; null without a task. */
  groupKey: string | null;
  /** Order of arrival in the group. */
  sampleIdx: number | null;
  /** The given phase, or an inferred `eval`. */
  phase: KnownPhase | null;
}

export interface InferredRun {
  /** Samples per prompt: the setting, or the most frequent count; null without any task. */
  n: number | null;
  /** Share of the training waves that look like one step, 0 to 1. Below `MIN_CONFIDENCE` steps are unknown. */
  confidence: number;
  evalConfidence: number;
  /** Number of training waves. */
  waves: number;
  rollouts: Map<string, InferredArrival>;
}

const MIN_CONFIDENCE = 0.8;

/**
 * Infers steps, groups and samples from the times of arrival, for sources that upload none (SkyRL, slime, miles;
 * docs/reference/metrics.md#step-inference). Exact for a synchronous trainer that loses nothing and either pauses for more than ten
 * seconds between steps or has a configured batch size. O(n log n). The order of `arrivals` does not matter.
 */
export function inferSteps(arrivals: readonly Arrival[], settings: Pick<RunSettings, 'n' | 'batchSize'> = {}): InferredRun {
  const sorted = arrivals.toSorted((a, b) => a.receivedAt - b.receivedAt || (a.id < b.id ? -1 : Number(a.id > b.id)));
  const others = sorted.filter(({ phase }) => phase !== 'eval');
  const line = lineOf(others);
  const long = longGaps(line.times);
  const bursts = burstsOf(line, long);
  const n = positive(settings.n) ?? modalCount(bursts);
  const evaluations =
    n === null
      ? new Set<Burst>()
      : evaluationBursts(
          bursts.filter(({ counts }) => counts.size > 0),
          n,
        );
  const { training, found } = split(others, bursts, evaluations);
  const trainingWaves = wavesOf(training, { n: n ?? 1, counted: positive(settings.n) === null, batchSize: positive(settings.batchSize) });
  const evals = [...sorted.filter(({ phase }) => phase === 'eval'), ...found].sort(
    (a, b) => a.receivedAt - b.receivedAt || (a.id < b.id ? -1 : 1),
  );
  const evalLine = lineOf(evals);
  const evalN = modalCount(burstsOf(evalLine, longGaps(evalLine.times)));
  const evalWaves = wavesOf(evals, { n: evalN ?? 1, counted: true, batchSize: null });
  const rollouts = new Map<string, InferredArrival>();
  const sure = trainingWaves.confidence >= MIN_CONFIDENCE;
  assign(rollouts, training, trainingWaves, n, sure ? (wave) => wave : null);
  const stepOfEval = stepsOfEvaluations(training, trainingWaves, evals, evalWaves);
  const evalSure = evalWaves.confidence >= MIN_CONFIDENCE && (sure || training.length === 0);
  assign(rollouts, evals, evalWaves, evalN, evalSure ? stepOfEval : null);
  return {
    n,
    confidence: trainingWaves.confidence,
    evalConfidence: evalWaves.confidence,
    waves: trainingWaves.starts.length,
    rollouts,
  };
}

const positive = (value: number | null | undefined): number | null =>
  typeof value === 'number' && Number.isInteger(value) && value > 0 ? value : null;

function lineOf(arrivals: readonly Arrival[]): ArrivalLine {
  const numbers = new Map<string, number>();
  const tasks = Int32Array.from(arrivals, ({ taskKey }) => {
    if (taskKey === null) return -1;
    const number = numbers.get(taskKey) ?? numbers.size;
    numbers.set(taskKey, number);
    return number;
  });
  return { times: Float64Array.from(arrivals, ({ receivedAt }) => receivedAt), tasks, taskCount: numbers.size };
}

/** Removes the evaluations, unless one of their rollouts is known to be training. */
function split(arrivals: readonly Arrival[], bursts: readonly Burst[], evaluations: ReadonlySet<Burst>) {
  const training: Arrival[] = [];
  const found: Arrival[] = [];
  for (const burst of bursts) {
    const part = arrivals.slice(burst.from, burst.to);
    if (!evaluations.has(burst) || part.some(({ phase }) => phase !== null)) for (const arrival of part) training.push(arrival);
    else for (const arrival of part) found.push({ ...arrival, phase: 'eval' });
  }
  return { training, found };
}

function wavesOf(arrivals: readonly Arrival[], rule: WaveRule): Waves {
  const line = lineOf(arrivals);
  return cutWaves(line, longGaps(line.times), rule);
}

/** An evaluation measures the policy of the training step before it. */
function stepsOfEvaluations(
  training: readonly Arrival[],
  trainingWaves: Waves,
  evals: readonly Arrival[],
  evalWaves: Waves,
): (wave: number) => number {
  if (training.length === 0) return (wave) => wave;
  let begun = 0;
  const steps = evalWaves.starts.map((start) => {
    while (begun < trainingWaves.starts.length && training[trainingWaves.starts[begun]!]!.receivedAt <= evals[start]!.receivedAt)
      begun += 1;
    return Math.max(begun - 1, 0);
  });
  return (wave) => steps[wave]!;
}

/** `stepOf`: the step of a wave; null if waves are no steps, then visits determine the groups. */
function assign(
  rollouts: Map<string, InferredArrival>,
  arrivals: readonly Arrival[],
  waves: Waves,
  n: number | null,
  stepOf: ((wave: number) => number) | null,
): void {
  const seen = new Map<string, TaskHistory>();
  arrivals.forEach(({ id, taskKey, phase }, at) => {
    const window = waves.wave[at]!;
    const step = stepOf?.(window) ?? null;
    if (taskKey === null) {
      rollouts.set(id, { step, window, visit: null, groupKey: null, sampleIdx: null, phase });
      return;
    }
    const history = seen.get(taskKey) ?? { occurrences: 0, visits: 0, window: -1, group: '', key: '' };
    seen.set(taskKey, history);
    if (history.window !== window) {
      history.window = window;
      history.visits += 1;
    }
    const visit = step === null ? Math.floor(history.occurrences / (n ?? 1)) : history.visits - 1;
    const group = `${phase} ${step} ${visit}`;
    if (history.group !== group) {
      history.group = group;
      history.key = groupKeyOf(phase, taskKey, step, visit);
    }
    const sampleIdx = step === null ? history.occurrences % (n ?? 1) : waves.position[at]!;
    history.occurrences += 1;
    rollouts.set(id, { step, window, visit, groupKey: history.key, sampleIdx, phase });
  });
}

interface TaskHistory {
  occurrences: number;
  /** Waves that contain it. */
  visits: number;
  window: number;
  group: string;
  key: string;
}
