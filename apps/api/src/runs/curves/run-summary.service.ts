import { Injectable } from '@nestjs/common';
import { PHASES, PROVENANCE_FIELDS, PROVENANCES, type RunSummaryQuery } from '@palestra/protocol';
import { provenanceShift } from '@palestra/rollouts';
import { Database } from '../../platform/database/database.ts';
import { codeOf } from '../../store/vocabulary-codes.ts';
import { axisOf } from './axis.ts';
import { rowsOfEnvironments } from './environment-rows.ts';
import { mainPhase } from './main-phase.ts';
import { countSteps, groupSizeOf, intervalOfMeans, type Kpi, mergeFigures, passKpis, percentileKpis } from './merge-figures.ts';
import { RewardPercentiles } from './reward-percentiles.service.ts';
import { RunAdvisoriesService } from './run-advisories.service.ts';
import type { RunScope } from '../run-scope.ts';
import { selectGroupClasses } from './run-summary.sql.ts';
import { type FigureSet, StepFiguresService } from '../../store/figures/step-figures.service.ts';
import type { StepRow, WindowRow } from '../../store/figures/step-figures.sql.ts';

/** Figures of a range of steps, merged from rollups and groups. */
@Injectable()
export class RunSummaryService {
  constructor(
    private readonly database: Database,
    private readonly figures: StepFiguresService,
    private readonly percentiles: RewardPercentiles,
    private readonly advisories: RunAdvisoriesService,
  ) {}

  async summary(run: RunScope, { lens, den, ...selection }: RunSummaryQuery) {
    const read = await this.figures.steps({ runSeq: run.seq, ...selection });
    const { phase, rows: known } = mainPhase(read.rows, selection.phase);
    // Where no step is known, the figures are of all rollouts together.
    const rows = known.length > 0 || selection.steps ? known : read.rows.filter((row) => row.phase === codeOf(PHASES, phase));
    const windows =
      known.length > 0 ? [] : (await this.figures.windows({ runSeq: run.seq, ...selection })).filter((row) => row.phase === rows[0]?.phase);
    const set: FigureSet = { lens, den: lens === 'canonical' ? den : 'effective', keys: [] };
    // A trainer's figure of an environment cannot be computed from its figures of each variant.
    const counted = lens === 'canonical' ? rows : rowsOfEnvironments(rows, read.names);
    const computed = await this.figures.withFigures(run.seq, counted, set);
    const envIds = selection.env === undefined ? null : [...read.names.keys()];
    const { kpis, incomplete } = await this.#kpis(run.seq, computed.rows, set, envIds);
    const sum = (of: (row: StepRow) => number) => rows.reduce((total, row) => total + of(row), 0);
    return {
      lens,
      den: lens === 'canonical' ? den : null,
      phase,
      ...axisOf(windows, 'step'),
      windows: windowsOf(windows),
      steps: { from: stepOf(rows[0]), to: stepOf(rows.at(-1)), count: new Set(known.map(({ step }) => step)).size },
      rollouts: sum((row) => row.rollouts),
      scored: sum((row) => row.scored),
      errors: sum((row) => row.errors),
      finished: sum((row) => row.finished),
      messages: sum((row) => row.messages),
      gaps: sum((row) => row.figures.gaps),
      groups: sum((row) => row.figures.groups),
      group_size: groupSizeOf(rows),
      incomplete_groups: sum((row) => row.figures.incomplete_groups),
      stops: stopsOf(rows),
      success: successOf(rows),
      kpis,
      provenance: provenanceMix(rows),
      lag_ms: run.as_of === null ? null : Math.max(0, Date.now() - run.as_of.getTime()),
      advisories: await this.advisories.of(run, rows),
      incomplete: computed.incomplete || incomplete,
    };
  }

  async #kpis(
    runSeq: number,
    rows: readonly StepRow[],
    set: FigureSet,
    envIds: readonly number[] | null,
  ): Promise<{ kpis: Kpi[]; incomplete: boolean }> {
    const kpis = mergeFigures(rows, set);
    if (set.lens !== 'canonical' || rows.length === 0) return { kpis, incomplete: false };
    const percentiles = rows.length === 1 ? null : await this.percentiles.of(rows, { runSeq, envIds, den: set.den });
    const all = percentiles ? insertAfter('reward_max', kpis, percentileKpis(rows, set, percentiles)) : kpis;
    const incomplete = percentiles?.incomplete ?? false;
    if (set.den !== 'effective') return { kpis: all, incomplete };
    const phase = rows[0]!.phase;
    const classes = await selectGroupClasses(this.database.pool, { runSeq, from: rows[0]!.step, to: rows.at(-1)!.step, phase, envIds });
    const interval = intervalOfMeans(classes);
    const average = all.find(({ key }) => key === 'avg@n');
    if (average && interval) Object.assign(average, interval);
    const passes = passKpis(classes, groupSizeOf(rows)?.n ?? 0).map((kpi) => ({ ...kpi, steps: countSteps(rows) }));
    return { kpis: [...all.filter(({ key }) => !/^pass@\d+$|^avg@n_ci/.test(key)), ...passes], incomplete };
  }
}

function insertAfter(key: string, kpis: readonly Kpi[], more: readonly Kpi[]): Kpi[] {
  const at = kpis.findIndex((kpi) => kpi.key === key) + 1;
  return [...kpis.slice(0, at), ...more, ...kpis.slice(at)];
}

function windowsOf(rows: readonly WindowRow[]): { from: number; to: number; count: number } | null {
  const [first, last] = [rows[0], rows.at(-1)];
  return first && last ? { from: first.window.from, to: last.window.to, count: last.step + 1 } : null;
}

const stepOf = (row: StepRow | undefined): number | null => (row === undefined || row.step < 0 ? null : row.step);

function stopsOf(rows: readonly StepRow[]): Record<string, number> {
  const stops: Record<string, number> = {};
  for (const { figures } of rows) for (const [stop, count] of Object.entries(figures.stops)) stops[stop] = (stops[stop] ?? 0) + count;
  return stops;
}

function successOf(rows: readonly StepRow[]): { threshold: number; strict: boolean } | null {
  const rules = new Map(rows.map(({ figures }) => [JSON.stringify(figures.success), figures.success]));
  return rules.size === 1 ? [...rules.values()][0]! : null;
}

function provenanceMix(rows: readonly StepRow[]): Record<string, Record<(typeof PROVENANCES)[number], number>> {
  const mix = PROVENANCE_FIELDS.map((field) => {
    const counts = { unknown: 0, inferred: 0, parsed: 0, reported: 0 };
    for (const { provenance, rollouts } of rows) counts[PROVENANCES[(provenance >> provenanceShift(field)) & 3]!] += rollouts;
    return [field, counts] as const;
  });
  return Object.fromEntries(mix);
}
