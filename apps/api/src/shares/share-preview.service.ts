import { Injectable } from '@nestjs/common';
import { formatReward } from '@palestra/kit/reward-text';
import { PalestraError } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { type LoadedShare, ShareAccess } from '../accounts/share-access.ts';
import { RolloutReadsService } from '../rollouts/rollout-reads.service.ts';
import { RolloutSnapshots } from '../rollouts/rollout-snapshot.ts';
import { presentHeader } from '../rollouts/rollout.presenter.ts';
import { RunSeriesService } from '../runs/curves/run-series.service.ts';
import { RunSummaryService } from '../runs/curves/run-summary.service.ts';
import { CompareRunsService } from '../runs/insights/compare-runs.service.ts';
import { RunScopes } from '../runs/run-scope.ts';
import { RunService } from '../runs/run.service.ts';
import type { Chart } from './share-chart.ts';

/** What a link preview says. The texts hold names that tenants chose: escape them. */
export interface Preview {
  title: string;
  description: string;
  chart: Chart;
}

/** Points of the curve of a run, and the newest rollouts of a list, whose rewards are drawn from low to high. */
const DRAWN = 200;
const COUNTS: Record<number, string> = { 2: 'Two', 3: 'Three', 4: 'Four' };
const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;

/** Title, figure and chart of what a link covers: nothing else of the organisation. */
@Injectable()
export class SharePreviews {
  constructor(
    private readonly access: ShareAccess,
    private readonly snapshots: RolloutSnapshots,
    private readonly reads: RolloutReadsService,
    private readonly runs: RunService,
    private readonly series: RunSeriesService,
    private readonly summaries: RunSummaryService,
    private readonly comparisons: CompareRunsService,
    private readonly scopes: RunScopes,
  ) {}

  /** Null when what the link shows was deleted. */
  async of(share: LoadedShare): Promise<Preview | null> {
    try {
      return await this.#of(share, this.access.callerOf(share));
    } catch (error) {
      if (error instanceof PalestraError && error.status === 404) return null;
      throw error;
    }
  }

  #of(share: LoadedShare, guest: Caller): Promise<Preview> {
    switch (share.kind) {
      case 'run':
        return this.#run(guest, share.runIds[0]!);
      case 'query':
        return this.#list(guest, share.runIds[0]!, share.query ?? '');
      case 'runs':
        return this.#comparison(guest, share.runIds);
      case 'rollouts':
        return this.#rollouts(guest, share.rolloutIds);
      default:
        return this.#rollout(guest, share.rolloutIds[0]!);
    }
  }

  async #rollout(guest: Caller, id: string): Promise<Preview> {
    const { rollout, line, task, reward } = await this.#read(guest, id);
    const parts = [
      rollout.environment,
      rollout.run.name,
      rollout.step === null ? null : `step ${rollout.step}`,
      rollout.stop,
      plural(rollout.turns, 'turn'),
    ];
    return {
      title: `${task}: ${reward}`,
      description: parts.filter((part) => part !== null).join(' · '),
      chart: { lines: [line] },
    };
  }

  async #rollouts(guest: Caller, ids: readonly string[]): Promise<Preview> {
    const read = await Promise.all(ids.map((id) => this.#read(guest, id)));
    const about = ({ task, reward, rollout }: (typeof read)[number]) => `${task}, ${reward}, ${plural(rollout.turns, 'turn')}`;
    return {
      title: `${COUNTS[ids.length]} rollouts: ${read.map(({ reward }) => reward).join(' against ')}`,
      description: read.map((one, at) => `${'ABCD'[at]}: ${about(one)}`).join(' · '),
      chart: { lines: read.map(({ line }) => line) },
    };
  }

  /** A rollout in words, with the sum of its rewards by message. */
  async #read(guest: Caller, id: string) {
    const snapshot = await this.snapshots.load(guest, id);
    const rollout = presentHeader(snapshot.head, snapshot.record, snapshot.orgName, []);
    const { reward: rewards } = await this.reads.outline(snapshot);
    let sum = 0;
    return {
      rollout,
      line: { figure: formatReward(rollout.reward), values: rewards.map((reward) => (sum += reward ?? 0)) },
      task: rollout.task_index === null ? (rollout.rolloutName ?? 'rollout') : `${rollout.split ?? 'task'} ${rollout.task_index}`,
      reward: rollout.reward === null ? 'not scored' : `reward ${formatReward(rollout.reward)}`,
    };
  }

  async #run(guest: Caller, id: string): Promise<Preview> {
    const { name, figure, line, environments } = await this.#runFigure(guest, id);
    return { title: `${name}: ${figure.short}`, description: [figure.long, ...environments].join(' · '), chart: { lines: [line] } };
  }

  async #runFigure(guest: Caller, id: string) {
    const { name, environments } = await this.runs.get(guest, id);
    const scope = await this.scopes.open(guest, id);
    const summary = await this.summaries.summary(scope, { lens: 'canonical', den: 'effective' });
    const kpi = summary.kpis.find(({ key }) => key === 'reward_mean');
    const short = kpi?.value == null ? 'not scored' : `mean reward ${formatReward(kpi.value)}`;
    const over = plural(kpi?.value == null ? summary.rollouts : kpi.denominator, 'rollout');
    const steps = summary.steps.count > 0 ? `, ${plural(summary.steps.count, 'step')}` : '';
    const figure = { short, long: `${short} over ${over}${steps}` };
    const line = { figure: formatReward(kpi?.value), values: await this.#curve(scope.seq, summary.phase) };
    return { name, figure, line, environments: environments.slice(0, 3) };
  }

  async #curve(runSeq: number, phase: string | null): Promise<(number | null)[]> {
    const query = { m: ['reward_mean'], lens: 'canonical', den: 'effective', x: 'step', max: DRAWN } as const;
    const { series } = await this.series.series(runSeq, { ...query, m: [...query.m] });
    return (series.find((one) => one.phase === phase) ?? series[0])?.value ?? [];
  }

  async #list(guest: Caller, id: string, q: string): Promise<Preview> {
    const run = await this.runs.get(guest, id);
    const list = await this.runs.rollouts(guest, id, { q, sort: 'created_at', order: 'desc', limit: DRAWN, offset: 0 });
    const isExact = list.total_is !== 'at_least' || list.next === null;
    const count = `${list.total}${isExact ? '' : ' or more'} rollout${list.total === 1 ? '' : 's'}`;
    const rewards = list.rollouts.flatMap(({ reward }) => reward ?? []).toSorted((a, b) => a - b);
    return {
      title: `${run.name}: ${count}`,
      description: q === '' ? `${count} of the run` : `${count} match ${q}`,
      chart: { lines: [{ figure: `${list.total}${isExact ? '' : '+'}`, values: rewards }] },
    };
  }

  async #comparison(guest: Caller, ids: readonly string[]): Promise<Preview> {
    const runs = await Promise.all(ids.map((id) => this.#runFigure(guest, id)));
    const compared = await this.comparisons.compare(guest, { runs: [...ids], steps: 'common', den: 'effective' });
    const differences = compared.pairs.flatMap(({ metrics }, at) => {
      const found = metrics.find(({ metric }) => metric === 'reward_mean');
      if (!found) return [];
      const range = found.low === null || found.high === null ? '' : ` (95 %: ${signed(found.low)} to ${signed(found.high)})`;
      return [`${runs[at + 1]!.name} ${signed(found.difference)}${range}`];
    });
    return {
      title: runs.map(({ name, figure }) => `${name}: ${figure.short}`).join(' against '),
      description: differences.length === 0 ? compared.steps.words : `Difference to ${runs[0]!.name}: ${differences.join(' · ')}`,
      chart: { lines: runs.map(({ line }) => line) },
    };
  }
}

const signed = (value: number): string => formatReward(value, { signed: true });
