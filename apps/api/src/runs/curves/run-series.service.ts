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
import { type FigureSet, figuresOf, StepFiguresService } from '../../store/figures/step-figures.service.ts';
import { isWindow, selectStepTimes, type StepRow } from '../../store/figures/step-figures.sql.ts';

/** Members of a family like `pass@{k}` in one answer. */
const MAX_KEYS = 24;
/** Of environments by id: variants of one share it. */
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
    const scope = { runSeq, env: query.env, phase: query.phase, steps: query.steps };
    const { rows: read, names } = await this.figures.steps(scope, query.by === 'env');
    const rows = rowsOfEnvironments(read, names);
    const windows = async () => rowsOfEnvironments(await this.figures.windows(scope, query.by === 'env'), names);
    const parts = await this.#points(rows, query, windows);
    const xOf = await this.#xs(runSeq, parts.flat(), names, query.x);
    let incomplete = false;
    const series = [];
    for (const { m, definition } of wanted) {
      const den = definition.lens === 'canonical' ? query.den : null;
      const set: FigureSet = { lens: definition.lens, den: den ?? 'scored', keys: definition.key.includes('{') ? [] : [definition.key] };
      const made = [];
      for (const part of parts) made.push(await this.figures.withFigures(runSeq, part, set));
      incomplete ||= made.some((one) => one.incomplete);
      for (const [name, own] of byCurve(
        made.flatMap((one) => one.rows),
        names,
      )) {
        for (const key of keysOf(definition, own, set)) {
          const { env_id, phase } = own[0]!;
          const head = { m, key, lens: definition.lens, den, label: definition.label, formula: definition.formula };
          const place = { phase: wordOf(PHASES, phase) ?? ('unknown' as const), env: env_id === 0 ? null : (names.get(env_id) ?? null) };
          series.push({
            ...head,
            ...place,
            ...axisOf(own, query.x),
            ...columns(own, key, set, definition, (row) => xOf(name, row), query.max),
          });
        }
      }
    }
    const unknown = rows.filter(({ step }) => step < 0).reduce((total, { rollouts }) => total + rollouts, 0);
    const shown = parts[0].length === 0 ? parts[1] : parts[0];
    return { x: query.x, ...axisOf(shown, query.x), series, unknown_step: unknown, incomplete };
  }

  /** What curves go through: steps, and windows of arrival. A phase of which no step is known has windows, whatever was asked for. */
  async #points(rows: readonly StepRow[], { x }: RunSeriesQuery, windows: () => Promise<StepRow[]>): Promise<[StepRow[], StepRow[]]> {
    const known = rows.filter(({ step }) => step >= 0);
    const phases = new Set(rows.filter(({ step }) => step < 0).map(({ phase }) => phase));
    if (x !== 'window') for (const { phase } of known) phases.delete(phase);
    if (phases.size === 0) return [known, []];
    const made = (await windows()).filter(({ phase }) => phases.has(phase));
    return [x === 'window' && made.length > 0 ? [] : known, made];
  }

  async #xs(
    runSeq: number,
    rows: readonly StepRow[],
    names: Names,
    x: RunSeriesQuery['x'],
  ): Promise<(curve: string, row: StepRow) => number | null> {
    if (x === 'step' || x === 'window') return (_curve, row) => (isWindow(row) ? row.window.from : row.step);
    if (x === 'time') {
      const steps = new Set(rows.filter((row) => !isWindow(row)).map(({ step }) => step));
      const times = await selectStepTimes(this.database.pool, runSeq, [...steps]);
      return (_curve, row) => (isWindow(row) ? row.window.from : (times.get(row.step) ?? null));
    }
    const counts = new Map<StepRow, number>();
    for (const own of byCurve(rows, names).values()) {
      let total = 0;
      for (const row of own) counts.set(row, (total += row.rollouts));
    }
    return (_curve, row) => counts.get(row) ?? null;
  }
}

/** Throws 422 `invalid_query` for a name that nobody has, with the nearest one. */
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

/** The keys that a family has at some step; of anything else the key itself. */
function keysOf(definition: MetricDefinition, rows: readonly StepRow[], set: FigureSet): string[] {
  if (!definition.key.includes('{')) return [definition.key];
  const keys = new Set<string>();
  // Not what somebody else asked for once, `pass@3`.
  const namedBy = (row: StepRow) =>
    set.lens === 'canonical' && set.den === 'scored' && row.env_ids === undefined ? row.figures.canonical : (figuresOf(row, set) ?? {});
  for (const row of rows) for (const key of Object.keys(namedBy(row))) keys.add(key);
  const [before, after] = definition.key.split(/\{\w+\}/) as [string, string];
  const own = [...keys].filter(
    (key) => key.startsWith(before) && key.endsWith(after) && metric(definition.lens, key)?.label === definition.label,
  );
  return own.toSorted((a, b) => a.localeCompare(b, 'en', { numeric: true })).slice(0, MAX_KEYS);
}

function columns(
  rows: readonly StepRow[],
  key: string,
  set: FigureSet,
  definition: MetricDefinition,
  xOf: (row: StepRow) => number | null,
  max: number,
) {
  const points = rows.map((row) => ({ row, figure: figuresOf(row, set)?.[key] ?? null }));
  const shown = decimate(
    points.map(({ figure }) => figure?.[0] ?? null),
    max,
  ).map((at) => points[at]!);
  return {
    step: shown.map(({ row }) => row.step),
    x: shown.map(({ row }) => xOf(row)),
    value: shown.map(({ figure }) => figure?.[0] ?? null),
    denominator: shown.map(({ figure }) => figure?.[1] ?? 0),
    of: shown.map(({ row, figure }) => figure?.[2] ?? row.rollouts),
    provenance: shown.map(({ row }) => weakest(row.provenance, definition)),
    incomplete_groups: shown.map(({ row }) => row.figures.incomplete_groups),
    notes: shown.flatMap(({ figure }, at) => (figure?.[3] === undefined ? [] : { at, note: figure[3] })),
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
