import { Injectable } from '@nestjs/common';
import { PHASES, PROVENANCE_FIELDS, PROVENANCES, STOP_REASONS, type ToolListQuery, VERIFICATIONS } from '@palestra/protocol';
import { NORMALISER_VERSION, provenanceShift } from '@palestra/rollouts';
import { Database } from '../../platform/database/database.ts';
import { codeOf, wordOf } from '../../store/vocabulary-codes.ts';
import { successRule } from '../../store/figures/success-thresholds.sql.ts';
import { rolloutQuery } from '../../rollouts/rollout-query.ts';
import { FIRST_FACET_PARAMETER, selectConfig, selectFacets, selectLatencies, selectTools } from './run-insights.sql.ts';
import { publishedTools } from './run-tools.service.ts';
import { type RunEnvironmentRow, selectRunEnvironments, selectToolEnvironments } from './run-tools.sql.ts';
import type { RunScope } from '../run-scope.ts';
import { selectEnvironments, selectSteps } from '../../store/figures/step-figures.sql.ts';

/** Maximum of rollouts that the configuration of a run reads. */
const MAX_READ = 10_000;
/** Maximum of rollouts that facets count. */
const MAX_COUNTED = 10_000;
/** Up to this number of rollouts, percentiles of latency are exact. */
const MAX_TIMED = 20_000;

const rangeOf = (steps: ToolListQuery['steps']): [number, number] => [steps?.from ?? -1, steps?.to ?? 2_147_483_647];

/** Tools, facets and configuration of a run. */
@Injectable()
export class RunInsightsService {
  constructor(private readonly database: Database) {}

  async tools(run: RunScope, { steps, phase }: ToolListQuery) {
    const { pool } = this.database;
    const [code, range] = [phase === undefined ? null : codeOf(PHASES, phase), rangeOf(steps)];
    const scope = { runSeq: run.seq, phase: code, from: range[0], to: range[1] };
    const [environments, calledIn, tools, exact, rollups] = await Promise.all([
      selectRunEnvironments(pool, run.seq),
      selectToolEnvironments(pool, scope),
      selectTools(pool, run.seq, code, ...range),
      selectLatencies(pool, run.seq, code, ...range, MAX_TIMED),
      selectSteps(pool, { runSeq: run.seq, envIds: null, phase: code ?? undefined, steps }),
    ]);
    const sum = (of: (row: (typeof rollups)[number]) => number) => rollups.reduce((total, row) => total + of(row), 0);
    const all = { rollouts: sum((row) => row.rollouts), scored: sum((row) => row.scored), rewards: sum((row) => row.reward_sum) };
    return {
      tools: tools.map((tool) => {
        const [p50, p95] = exact?.get(tool.tool) ?? [tool.p50_ms, tool.p95_ms];
        const unused = all.scored - tool.scored;
        return {
          tool: tool.tool,
          ...publishedIn(tool.tool, environments, calledIn.get(tool.tool) ?? []),
          rollouts: tool.rollouts,
          calls: tool.calls,
          calls_per_rollout: tool.calls / tool.rollouts,
          errors: tool.errors,
          error_rate: tool.calls === 0 ? null : tool.errors / tool.calls,
          failures: { policy: tool.policy, environment: tool.environment, infrastructure: tool.infrastructure },
          result_bytes: tool.result_bytes,
          latency: {
            p50_ms: p50,
            p95_ms: p95,
            timed: tool.timed,
            coverage: tool.calls === 0 ? null : tool.timed / tool.calls,
            exact: exact !== null,
          },
          reward_used: tool.scored === 0 ? null : tool.reward_sum / tool.scored,
          reward_unused: unused <= 0 ? null : (all.rewards - tool.reward_sum) / unused,
        };
      }),
      rollouts: all.rollouts,
    };
  }

  async facets(run: RunScope, q: string | undefined) {
    const query = q === undefined || q.trim() === '' ? null : await rolloutQuery(this.database.pool, q, [run.seq], FIRST_FACET_PARAMETER);
    const found = await selectFacets(this.database.pool, run.seq, MAX_COUNTED + 1, query?.where);
    const { env, split, tool, tool_error, tag, model, unscored, errors } = found;
    const filled = found.reward_bins.map(({ count }) => count > 0);
    const bins = found.reward_bins.slice(Math.max(0, filled.indexOf(true)), filled.lastIndexOf(true) + 1);
    return {
      total: Math.min(found.total, MAX_COUNTED),
      total_is: found.total > MAX_COUNTED ? ('at_least' as const) : ('exact' as const),
      query: query?.text ?? null,
      approximate: Boolean(query?.compiled.postFilter),
      env,
      split,
      tool,
      tool_error,
      tag,
      model,
      errors,
      phase: found.phase.map(({ value, count }) => ({ value: wordOf(PHASES, value) ?? ('unknown' as const), count })),
      stop: found.stop.map(({ value, count }) => ({ value: wordOf(STOP_REASONS, value) ?? 'unknown', count })),
      step: { min: found.step_min, max: found.step_max },
      policy_step: { min: found.policy_step_min, max: found.policy_step_max },
      reward: { min: found.reward_min, max: found.reward_max, unscored, bins },
      provenance: mixOf(Object.fromEntries(found.provenance.map(({ value, count }) => [value, count]))),
    };
  }

  async config(run: RunScope) {
    const { pool } = this.database;
    const [found, rollups, environments] = await Promise.all([
      selectConfig(pool, run.seq, MAX_READ),
      selectSteps(pool, { runSeq: run.seq, envIds: null }),
      selectEnvironments(pool, run.seq),
    ]);
    const { id, name, version, settings, inference, retention_days } = run;
    const verdicts = [
      ...VERIFICATIONS.map((word, code) => [word, found.verdicts[code] ?? 0] as const),
      ['not_yet', found.verdicts.null ?? 0] as const,
    ];
    const pinned = typeof settings.successThreshold === 'number' ? settings.successThreshold : undefined;
    return {
      run: { id, name, version, created_at: run.created_at.toISOString(), updated_at: run.updated_at.toISOString() },
      ingest: found.ingest ?? { accepted: 0, duplicates: 0, conflicts: 0, late: 0, nonfinite: 0 },
      rollouts: rollups.reduce((total, row) => total + row.rollouts, 0),
      messages: rollups.reduce((total, row) => total + row.messages, 0),
      bytes: found.bytes,
      gaps: rollups.reduce((total, row) => total + row.figures.gaps, 0),
      looked_at: found.looked_at,
      provenance: mixOf(found.provenance),
      sources: found.sources,
      models: found.models,
      verified: Object.fromEntries(verdicts),
      normaliser: { current: NORMALISER_VERSION, rows: found.normalisers },
      settings,
      inference,
      retention_days,
      success: environments.map(({ environment, variant, unit_rewards }) => ({
        environment,
        variant,
        ...successRule(pinned, unit_rewards),
      })),
    };
  }
}

/** Whether the environments in which a tool was called publish it. */
function publishedIn(tool: string, environments: readonly RunEnvironmentRow[], envIds: readonly number[]) {
  const discovered = environments
    .filter(({ id }) => envIds.includes(id))
    .map((one) => ({ name: one.environment ?? 'unnamed', tools: publishedTools(one) }))
    .filter(({ tools }) => tools !== null);
  const without = discovered.filter(({ tools }) => !tools!.some(({ name }) => name === tool));
  return { published: discovered.length === 0 ? null : without.length === 0, unpublished_in: without.map(({ name }) => name) };
}

/** Counts of rollouts by provenance of each field, from counts by the packed number. */
function mixOf(packed: Record<string, number>): Record<string, Record<(typeof PROVENANCES)[number], number>> {
  const mix = PROVENANCE_FIELDS.map((field) => {
    const counts = { unknown: 0, inferred: 0, parsed: 0, reported: 0 };
    for (const [value, count] of Object.entries(packed)) counts[PROVENANCES[(Number(value) >> provenanceShift(field)) & 3]!] += count;
    return [field, counts] as const;
  });
  return Object.fromEntries(mix);
}
