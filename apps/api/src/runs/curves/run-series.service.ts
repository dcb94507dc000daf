import { Injectable } from '@nestjs/common';
import { groupBy, metric, type MetricDefinition, resolveMetricName } from '@palestra/metrics';
import {
  type Lens,
  PalestraError,
  PHASES,
  PROVENANCE_FIELDS,
  type ProvenanceField,
  PROVENANCES,
  type RunSeriesQuery,
} from '@palestra/protocol';
import { provenanceShift } from '@palestra/rollouts';
import { Database } from '../../platform/database/database.ts';
import { wordOf } from '../../store/vocabulary-codes.ts';
import { axisOf } from './axis.ts';
import { decimate } from './decimate.ts';
import { environmentOf, rowsOfEnvironments } from './environment-rows.ts';
import { figureKeys, figureOf, type FigureSet, StepFiguresService } from '../../store/figures/step-figures.service.ts';
import { isWindow, selectStepTimes, type StepRow } from '../../store/figures/step-figures.sql.ts';

/** Maximum of members of a family like `pass@{k}` in one answer. */
const MAX_KEYS = 24;
/** Environment names by id; the variants of an environment share its name. */
type Names = ReadonlyMap<number, string | null>;

/** Curves over steps, from rollups. */
@Injectable()
export class RunSeriesService {
  constructor(
    private readonly database: Database,
    private readonly figures: StepFiguresService,
  ) {}

  async series(runSeq: number, query: RunSeriesQuery) {
    const wanted = query.m.map((m) => ({ m, definition: definitionOf(m, query.lens) }));
    const selection = { runSeq, env: query.env, phase: query.phase, steps: query.steps };
    const { rows: variants, names } = await this.figures.steps(selection, query.by === 'env');
    const rows = rowsOfEnvironments(variants, names);
    const windows = async () => rowsOfEnvironments(await this.figures.windows(selection, query.by === 'env'), names);
    const parts = await this.#points(rows, query, windows);
    const xOf = await this.#xs(runSeq, parts.flat(), names, query.x);
    let incomplete = false;
    const series = [];
    for (const { m, definition } of wanted) {
      const den = definition.lens === 'canonical' ? query.den : null;
      const set: FigureSet = { lens: definition.lens, den: den ?? 'effective', keys: definition.key.includes('{') ? [] : [definition.key] };
      const read = [];
      for (const part of parts) read.push(await this.figures.withFigures(runSeq, part, set));
      incomplete ||= read.some((one) => one.incomplete);
      for (const curve of byCurve(
        read.flatMap((one) => one.rows),
        names,
      ).values()) {
        for (const key of keysOf(definition, curve, set)) {
          const { env_id, phase } = curve[0]!;
          series.push({
            m,
            key,
            lens: definition.lens,
            den,
            label: definition.label,
            formula: definition.formula,
            phase: wordOf(PHASES, phase) ?? ('unknown' as const),
            env: env_id === 0 ? null : (names.get(env_id) ?? null),
            ...axisOf(curve, query.x),
            ...columns(curve, key, set, definition, xOf, query.max),
          });
        }
      }
    }
    const unknown = rows.filter(({ step }) => step < 0).reduce((total, { rollouts }) => total + rollouts, 0);
    const shown = parts[0].length === 0 ? parts[1] : parts[0];
    return { x: query.x, ...axisOf(shown, query.x), series, unknown_step: unknown, incomplete };
  }

  /** The points of the curves: steps, and arrival windows. A phase without a known step has windows, whatever the request says. */
  async #points(rows: readonly StepRow[], { x }: RunSeriesQuery, windows: () => Promise<StepRow[]>): Promise<[StepRow[], StepRow[]]> {
    const known = rows.filter(({ step }) => step >= 0);
    const phases = new Set(rows.filter(({ step }) => step < 0).map(({ phase }) => phase));
    if (x !== 'window') for (const { phase } of known) phases.delete(phase);
    if (phases.size === 0) return [known, []];
    const arrived = (await windows()).filter(({ phase }) => phases.has(phase));
    return [x === 'window' && arrived.length > 0 ? [] : known, arrived];
  }

  async #xs(runSeq: number, rows: readonly StepRow[], names: Names, x: RunSeriesQuery['x']): Promise<(row: StepRow) => number | null> {
    if (x === 'step' || x === 'window') return (row) => (isWindow(row) ? row.window.from : row.step);
    if (x === 'time') {
      const steps = new Set(rows.filter((row) => !isWindow(row)).map(({ step }) => step));
      const times = await selectStepTimes(this.database.pool, runSeq, [...steps]);
      return (row) => (isWindow(row) ? row.window.from : (times.get(row.step) ?? null));
    }
    const counts = new Map<StepRow, number>();
    for (const curve of byCurve(rows, names).values()) {
      let total = 0;
      for (const row of curve) counts.set(row, (total += row.rollouts));
    }
    return (row) => counts.get(row) ?? null;
  }
}

/** Throws 422 `invalid_query` for an unknown name, with the nearest known one. */
export function definitionOf(name: string, lens: Lens): MetricDefinition {
  const found = resolveMetricName(name, lens);
  const match = found.matches.find((candidate) => candidate.lens === lens) ?? found.matches[0];
  if (match) return metric(match.lens, match.key)!;
  const { suggestion } = found as { suggestion: string | null };
  const msg = `There is no metric ${name.slice(0, 100)}.${suggestion ? ` Did you mean ${suggestion}?` : ''}`;
  throw new PalestraError('invalid_query', {
    detail: [{ type: 'value_error', loc: ['query', 'm'], msg, input: name, ...(suggestion ? { suggestion } : {}) }],
  });
}

/** Rows of one environment and phase, in the order of their steps. */
const byCurve = (rows: readonly StepRow[], names: Names): Map<string, StepRow[]> =>
  groupBy(rows, (row) => JSON.stringify([row.phase, environmentOf(row, names)]));

/** The keys that a family has at any step; for a single metric its key. */
function keysOf(definition: MetricDefinition, rows: readonly StepRow[], set: FigureSet): string[] {
  if (!definition.key.includes('{')) return [definition.key];
  // Without keys that an earlier request named, like `pass@3`.
  const keysAt = (row: StepRow) =>
    set.lens === 'canonical' && set.den === 'effective' && row.env_ids === undefined
      ? Object.keys(row.figures.canonical)
      : (figureKeys(row, set) ?? []);
  const keys = new Set(rows.flatMap(keysAt));
  const [before, after] = definition.key.split(/\{\w+\}/) as [string, string];
  const members = [...keys].filter(
    (key) => key.startsWith(before) && key.endsWith(after) && metric(definition.lens, key)?.label === definition.label,
  );
  return members.toSorted((a, b) => a.localeCompare(b, 'en', { numeric: true })).slice(0, MAX_KEYS);
}

function columns(
  rows: readonly StepRow[],
  key: string,
  set: FigureSet,
  definition: MetricDefinition,
  xOf: (row: StepRow) => number | null,
  max: number,
) {
  const points = rows.map((row) => ({ row, figure: figureOf(row, set, key) }));
  const shown = decimate(
    points.map(({ figure }) => figure?.value ?? null),
    max,
  ).map((at) => points[at]!);
  return {
    step: shown.map(({ row }) => row.step),
    x: shown.map(({ row }) => xOf(row)),
    value: shown.map(({ figure }) => figure?.value ?? null),
    denominator: shown.map(({ figure }) => figure?.denominator ?? 0),
    of: shown.map(({ row, figure }) => figure?.of ?? row.rollouts),
    provenance: shown.map(({ row }) => weakest(row.provenance, definition)),
    incomplete_groups: shown.map(({ row }) => row.figures.incomplete_groups),
    notes: shown.flatMap(({ figure }, at) => (figure?.note === undefined ? [] : { at, note: figure.note })),
    unavailable: points.length > 0 && points.every(({ figure }) => figure === null),
  };
}

const FIELD_OF: Partial<Record<MetricDefinition['needs'][number], ProvenanceField>> = {
  group: 'group',
  reward: 'reward',
  rewardPositive: 'reward',
  lastReward: 'reward',
  rewardSteps: 'reward',
  trainedReward: 'reward',
  stop: 'stop',
  turns: 'turns',
  tokensOut: 'tokens',
  tokensTool: 'tokens',
};

function weakest(packed: number, { needs }: MetricDefinition): (typeof PROVENANCES)[number] {
  const fields = new Set<ProvenanceField>(['step', ...needs.flatMap((need) => FIELD_OF[need] ?? [])]);
  const codes = PROVENANCE_FIELDS.filter((field) => fields.has(field)).map((field) => (packed >> provenanceShift(field)) & 3);
  return PROVENANCES[Math.min(...codes)]!;
}
