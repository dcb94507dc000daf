import { Injectable } from '@nestjs/common';
import { type FailureQuery, type FailureList, PHASES, STOP_REASONS } from '@palestra/protocol';
import { Database } from '../../platform/database/database.ts';
import { TenantConcurrency } from '../../platform/tenant-concurrency.ts';
import { FailureTexts } from '../../rollouts/failure-texts.service.ts';
import { codeOf, wordOf } from '../../store/vocabulary-codes.ts';
import type { RunScope } from '../run-scope.ts';
import {
  type ClusterRow,
  countUnderived,
  type FailureScope,
  selectClusters,
  selectExamples,
  selectFirstSteps,
  selectOtherRuns,
  selectStepSizes,
  selectTrends,
} from './run-failures.sql.ts';

const MAX_BINS = 40;
const MAX_OTHER_RUNS = 5;
/** Lists in progress: each reads all failed rollouts of its run, and its causes in other runs. */
const LIMITS = { owner: 4, all: 16 };
const OTHER_RUNS = { within: 50, most: 1_000 };

/** Failed rollouts of a run, clustered by cause (docs/reference/failures.md). Counts depend on stored rows only. */
@Injectable()
export class RunFailuresService {
  readonly #limits = new TenantConcurrency('lists of failures', LIMITS);

  constructor(
    private readonly database: Database,
    private readonly texts: FailureTexts,
  ) {}

  /** Throws `capacity_exhausted`. */
  list(run: RunScope, query: FailureQuery): Promise<FailureList> {
    return this.#limits.use(run.orgId, () => this.#list(run, query));
  }

  async #list(run: RunScope, { steps, phase, env, limit }: FailureQuery): Promise<FailureList> {
    const { pool } = this.database;
    const scope: FailureScope = {
      orgId: run.orgId,
      runSeq: run.seq,
      phase: phase === undefined ? null : codeOf(PHASES, phase),
      steps: steps === undefined ? null : { from: steps.from, to: steps.to },
      env: env ?? null,
    };
    const [clusters, sizes, pending] = await Promise.all([
      selectClusters(pool, scope, limit),
      selectStepSizes(pool, scope),
      countUnderived(pool, scope),
    ]);
    const bins = binsOf(sizes);
    const causes = clusters.map(({ cause }) => cause);
    const [trends, firstSteps, others, examples] = await Promise.all([
      bins === null ? [] : selectTrends(pool, scope, { causes, ...bins }),
      scope.steps === null ? null : selectFirstSteps(pool, scope, causes),
      selectOtherRuns(pool, scope, causes, OTHER_RUNS),
      this.#examples(run, clusters),
    ]);
    const all = clusters[0];
    return {
      failures: clusters.flatMap((cluster) => {
        const example = examples.get(cluster.example);
        if (example === undefined) return [];
        const { fingerprint, class: cause, kind, tool, error } = example.failure;
        const trend = (bins?.bins ?? []).map(() => 0);
        for (const { cause: of, bin, n } of trends) if (of === cluster.cause && bin in trend) trend[bin] = n;
        return {
          fingerprint,
          class: cause,
          kind,
          tool,
          error,
          count: cluster.n,
          solved: cluster.solved,
          first_step: cluster.first_step,
          last_step: cluster.last_step,
          first_seen_step: firstSteps === null ? cluster.first_step : (firstSteps.get(cluster.cause) ?? null),
          mean_reward: cluster.mean_reward,
          trend,
          example: example.row,
          other_runs: others
            .filter(({ cause: of }) => of === cluster.cause)
            .slice(0, MAX_OTHER_RUNS)
            .map(({ name, n }) => ({ name, count: n })),
        };
      }),
      kinds: all?.kinds ?? 0,
      failed: all?.failed ?? 0,
      solved: all?.all_solved ?? 0,
      classes: { policy: all?.policy ?? 0, environment: all?.environment ?? 0, infrastructure: all?.infrastructure ?? 0 },
      rollouts: sizes.reduce((sum, { rollouts }) => sum + rollouts, 0),
      pending,
      bins: bins?.bins ?? [],
    };
  }

  /** By `seq`, with the text of each. */
  async #examples(run: RunScope, clusters: readonly ClusterRow[]) {
    const rows = await selectExamples(
      this.database.pool,
      run.seq,
      clusters.map(({ example }) => example),
    );
    const failures = await this.texts.of(rows);
    return new Map(
      rows.flatMap(({ seq, id, step, stop }) => {
        const failure = failures.get(seq);
        if (failure === undefined) return [];
        const { text, index } = failure;
        return [[seq, { failure, row: { id, step, stop: wordOf(STOP_REASONS, stop) ?? ('unknown' as const), text, index } }] as const];
      }),
    );
  }
}

/** Bins of equally many steps; null without a step. */
function binsOf(sizes: readonly { step: number; rollouts: number }[]) {
  const known = sizes.filter(({ step }) => step >= 0);
  const [first, last] = [known[0]?.step, known.at(-1)?.step];
  if (first === undefined || last === undefined) return null;
  const width = Math.ceil((last - first + 1) / MAX_BINS);
  const bins = Array.from({ length: Math.ceil((last - first + 1) / width) }, (_, bin) => {
    const from = first + bin * width;
    return { from, to: Math.min(last, from + width - 1), rollouts: 0 };
  });
  for (const { step, rollouts } of known) bins[Math.floor((step - first) / width)]!.rollouts += rollouts;
  return { bins, first, width };
}
