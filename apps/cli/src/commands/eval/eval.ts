import type { PalestraClient } from '@palestra/client';
import { EXIT } from '../../exit-codes.ts';
import { printable, type Printed, printOne } from '../../output.ts';
import { startProgress } from '../../progress.ts';
import { UsageError, withClient } from '../../settings.ts';
import { exitCodeFor, outcomeOf } from '../compare-conditions.ts';
import type { EpisodeResult } from './episode.ts';
import type { EvalCondition } from './metrics.ts';
import { type Plan, planOf, type PlanOptions } from './plan.ts';
import { playAll } from './play-all.ts';
import { type Evaluation, printEvaluation } from './print.ts';
import { resumeLine } from './resume-line.ts';
import { metricOf, type Prices, resultsOf } from './results.ts';
import { waitForFigures } from './stored.ts';

export interface EvalOptions extends Printed, PlanOptions {
  concurrency: number;
  priceIn?: number;
  priceOut?: number;
  failIf?: EvalCondition[];
}

/** Plays the episodes that the run lacks, uploads them, and prints the figures of all. Exit code 5 if a condition is met, else 1 without a score. */
export async function evaluate(target: string, options: EvalOptions): Promise<void> {
  const prices = pricesOf(options);
  if (options.resume && options.run === undefined) throw new UsageError('Pass --run NAME with --resume: the run to continue.');
  // Ctrl-C ends the episodes. The client can still close their sessions.
  const never = new AbortController().signal;
  const evaluation = await withClient((client, signal) => run(client, target, options, prices, signal), { signal: never });
  await printOne(options, evaluation, () => printEvaluation(evaluation));
  const status = exitCodeFor(evaluation.conditions);
  process.exitCode = status === EXIT.ok && evaluation.scored < evaluation.episodes ? EXIT.failed : status;
}

function pricesOf({ priceIn, priceOut }: EvalOptions): Prices | null {
  if ((priceIn === undefined) !== (priceOut === undefined)) throw new UsageError('Pass both --price-in and --price-out, or none of them.');
  return priceIn === undefined || priceOut === undefined ? null : { input: priceIn, output: priceOut };
}

async function run(
  client: PalestraClient,
  target: string,
  options: EvalOptions,
  prices: Prices | null,
  signal: AbortSignal,
): Promise<Evaluation> {
  const { samples, compare, failIf = [] } = options;
  const plan = await planOf(client, target, options, signal);
  const episodes = [...plan.stored, ...(await playMissing(client, plan, options, signal))];
  const { org } = await client.runs.change(plan.run, { finished: true });
  const results = resultsOf(episodes, { samples, levelOf: (task) => plan.levels.get(task) ?? null, prices });
  if (compare !== undefined) await waitForFigures(client, plan.run, signal);
  return {
    run: plan.run,
    url: `${client.url}/${encodeURIComponent(org)}/runs/${encodeURIComponent(plan.run)}`,
    environment: plan.name,
    version: plan.version,
    variant: plan.variant ?? null,
    split: plan.split,
    policy: plan.policy.name,
    samples,
    ...results,
    conditions: failIf.map((condition) => outcomeOf(condition, metricOf(results, condition.metric))),
    comparison: compare === undefined ? null : await client.runs.compare([compare, plan.run], { env: plan.name, phase: 'eval' }),
  };
}

/** Shows the progress. If it ends early, says how to continue. */
async function playMissing(client: PalestraClient, plan: Plan, options: EvalOptions, signal: AbortSignal): Promise<EpisodeResult[]> {
  for (const rollout of plan.incomplete) await client.runs.deleteRollout(rollout);
  const total = plan.stored.length + plan.missing.length;
  let count = plan.stored.length;
  const progress = startProgress('episodes');
  progress.total(total);
  for (let done = 0; done < count; done += 1) progress.step();
  try {
    return await playAll(client, plan, options, signal, ({ task, sample, failure, error }) => {
      count += 1;
      progress.step();
      if (failure !== null) progress.line(printable(`task ${task}, sample ${sample}: ${failure} failure: ${error}`));
    });
  } catch (error) {
    const line = resumeLine(process.argv.slice(2), plan.run);
    progress.line(printable(`${count} of ${total} episodes are stored in the run ${plan.run}. To continue:`));
    progress.line(printable(`  ${line}`));
    throw error;
  } finally {
    progress.stop();
  }
}
