import { Injectable } from '@nestjs/common';
import { changeOf, mixOf, type Moments, momentsOf, type PropertyChange, rankCauses, type StepMove } from '@palestra/metrics';
import { type MoveCause, PHASES } from '@palestra/protocol';
import { printText } from '@palestra/query';
import { MESSAGE_FLAGS } from '@palestra/rollouts';
import { Database } from '../../platform/database/database.ts';
import { TranscriptReader } from '../../store/storage/transcript-reader.service.ts';
import { wordOf } from '../../store/vocabulary-codes.ts';
import { selectTaskNames } from '../insights/compare-runs.sql.ts';
import { clausesOf, invalidInWords, nameOf, propertyInWords, tasksInWords, violationInWords } from './cause-words.ts';
import { type CheckedSample, InvalidArguments, type InvalidCalls } from './invalid-arguments.service.ts';
import {
  type ExampleRow,
  MAX_ROLLOUTS,
  type MomentColumns,
  type MoveScope,
  type PropertyRow,
  type SampleRow,
  selectExamples,
  selectProperties,
  selectTaskShares,
  type TaskRow,
} from './run-moves.sql.ts';

/** Causes of one answer. */
const MAX_CAUSES = 20;
/** Tasks in the query of the task mix. */
const MAX_TASKS = 10;
/** Tools whose failing call is looked up in a transcript. */
const MAX_CALLS = 3;
const MAX_QUERY = 1_900;
/** Ids of rollouts in a query. */
const MAX_NAMED = 48;

interface Candidate {
  kind: MoveCause['kind'];
  name: string;
  text: string;
  detail: string | null;
  clauses: string[];
  /** What `clauses` find; null: all rollouts that show it. */
  found: number | null;
  now: MoveCause['now'];
  before: MoveCause['before'];
  calls: MoveCause['calls'];
  change: Pick<PropertyChange, 'share' | 'effect'> | null;
  contribution: PropertyChange['contribution'];
  /** Length: failing calls make rollouts longer. */
  isSymptom: boolean;
  /** The first rollout that shows it: its `seq`, or the call itself. */
  example: string | MoveCause['example'];
}

/** What else changed at a step, from counts of its rollouts and of those of its baseline. */
@Injectable()
export class MoveCauses {
  constructor(
    private readonly database: Database,
    private readonly transcripts: TranscriptReader,
    private readonly invalid: InvalidArguments,
  ) {}

  /** The causes in the order of their weight. `cut`: a step has more rollouts than are counted. Throws `capacity_exhausted`. */
  async of(scope: MoveScope, { step, baseline, now, before, estimate }: StepMove): Promise<{ causes: MoveCause[]; cut: boolean }> {
    const { pool } = this.database;
    const [rows, tasks, checked] = await Promise.all([
      selectProperties(pool, scope, step, baseline),
      selectTaskShares(pool, scope, step, baseline),
      this.invalid.of(scope, step, baseline),
    ]);
    const all = rows.find(({ kind }) => kind === 'all');
    if (!all) return { causes: [], cut: false };
    const properties = rows
      .filter((row) => row !== all)
      .map((row) => candidateOf(row, all))
      .filter(isShown);
    const mix = await this.#taskMix(tasks);
    const invalid = (checked?.invalid ?? []).map((one) => invalidCandidate(one, checked!, all.now_rollouts));
    const ranked = rankCauses([...properties, ...invalid, ...(mix ? [mix] : [])], estimate.difference)
      .filter(({ cause, isLikely }) => isLikely || hasChanged(cause))
      .slice(0, MAX_CAUSES);
    const examples = await this.#examples(
      scope.runSeq,
      ranked.map(({ cause }) => cause),
    );
    const phase = wordOf(PHASES, scope.phase);
    const shared = [`step:${step}`, ...(phase && phase !== 'unknown' ? [`phase:${phase}`] : [])];
    const causes = ranked.map(({ cause, explained, isLikely }): MoveCause => {
      const { kind, name, text, detail, clauses, found, calls, change, contribution } = cause;
      const q = [...shared, ...clauses].join(' ');
      return {
        kind,
        name,
        text,
        detail,
        q: q.length > MAX_QUERY ? null : q,
        found,
        now: cause.now,
        before: cause.before,
        calls,
        share: change && { difference: change.share.difference, low: change.share.low, high: change.share.high },
        effect: change?.effect ?? null,
        contribution: contribution && { value: contribution.value, low: contribution.low, high: contribution.high },
        explained,
        separable: contribution?.isSeparable ?? true,
        likely: isLikely,
        example: examples.get(cause) ?? null,
      };
    });
    const scored = (side: 'now' | 'before') => all.strata.reduce((sum, { [side]: { n1 } }) => sum + n1, 0);
    return { causes, cut: scored('now') < now.rollouts || scored('before') < before.rollouts || all.now_rollouts === MAX_ROLLOUTS };
  }

  /** Null without tasks, or if the same tasks were played as often as before. */
  async #taskMix(tasks: readonly TaskRow[]): Promise<Candidate | null> {
    const shares = tasks.map(({ now, before, count, sum, sum_squares: sumOfSquares, visits, visit_squares: visitSquares }) => ({
      now,
      before,
      history: { count, sum, sumOfSquares, visits, visitSquares },
    }));
    const mix = mixOf(shares);
    if (!mix || mix.changed < 0.01) return null;
    const { changed: _changed, unseen, ...contribution } = mix;
    const played = tasks.filter(({ now }) => now > 0);
    // Those that move the mean most in the direction of the mix.
    const level = ({ count, sum }: TaskRow) => (count === 0 ? 0 : sum / count);
    const heaviest = played.toSorted((a, b) => Math.sign(mix.value) * (b.now * level(b) - a.now * level(a))).slice(0, MAX_TASKS);
    const names = await selectTaskNames(
      this.database.pool,
      heaviest.map(({ task_id }) => task_id),
    );
    const keys = heaviest.flatMap(({ task_id }) => names.get(task_id)?.key ?? []);
    return {
      kind: 'tasks',
      name: '',
      text: tasksInWords(mix.value, { now: played.length, other: played.filter(({ before }) => before === 0).length, unseen }),
      detail: null,
      clauses: keys.length === 0 ? [] : [`task:${keys.map(printText).join(',')}`],
      found: null,
      now: null,
      before: null,
      calls: null,
      change: null,
      contribution,
      isSymptom: false,
      example: null,
    };
  }

  async #examples(runSeq: number, causes: readonly Candidate[]): Promise<Map<Candidate, NonNullable<MoveCause['example']>>> {
    const rows = await selectExamples(
      this.database.pool,
      runSeq,
      causes.flatMap(({ example }) => (typeof example === 'string' ? example : [])),
    );
    const calls = new Set(causes.filter(({ kind }) => kind === 'tool_error').slice(0, MAX_CALLS));
    const found = new Map<Candidate, NonNullable<MoveCause['example']>>();
    for (const cause of causes) {
      const { example } = cause;
      if (typeof example === 'object') {
        if (example) found.set(cause, example);
        continue;
      }
      const row = rows.get(example);
      if (row) found.set(cause, { rollout: row.id, index: calls.has(cause) ? await this.#failingCall(row, cause.name) : null });
    }
    return found;
  }

  /** Index of the first call of the tool whose result is an error, else of that result; null if no message says so. */
  async #failingCall(row: ExampleRow, tool: string): Promise<number | null> {
    const messages = (await this.transcripts.skeletons([row])).get(row.seq) ?? [];
    const calls = new Map(messages.flatMap((one) => (one.type === 'tool_call' && one.callId !== null ? [[one.callId, one]] : [])));
    for (const { type, flags, callId, name, index } of messages) {
      if (type !== 'tool_result' || (flags & MESSAGE_FLAGS.error) === 0) continue;
      const call = callId === null ? undefined : calls.get(callId);
      if ((call?.name ?? name) === tool) return call?.index ?? index;
    }
    return null;
  }
}

function candidateOf(row: PropertyRow, all: PropertyRow): Candidate {
  const strata = new Map(row.strata.map((one) => [one.env, one]));
  const side = (name: 'now' | 'before') => all.strata.map(({ env, [name]: every }) => momentsWith(strata.get(env)?.[name], every));
  const change = changeOf({ now: side('now'), before: side('before') });
  const { kind, calls } = row;
  const callsOf = (sums: { errors: number; calls: number | null }) => ({ errors: sums.errors, calls: sums.calls ?? 0 });
  return {
    kind: kind as Candidate['kind'],
    name: nameOf(row),
    text: propertyInWords(row, all),
    detail: null,
    clauses: clausesOf(row),
    found: null,
    now: { rollouts: row.now_rollouts, of: all.now_rollouts },
    before: { rollouts: row.before_rollouts, of: all.before_rollouts },
    calls: calls && { now: callsOf(calls.now), before: callsOf(calls.before) },
    change,
    contribution: kind === 'interrupted' ? null : (change?.contribution ?? null),
    isSymptom: kind === 'turns' || kind === 'tokens',
    example: row.example,
  };
}

/** `stepRollouts`: rollouts of the step, checked or not. */
function invalidCandidate(one: InvalidCalls, { rollouts }: CheckedSample, stepRollouts: number): Candidate {
  const change = changeOf(one.moments);
  const side = (name: 'now' | 'before') => ({ rollouts: one.rollouts[name].length, of: rollouts[name].length });
  return {
    kind: 'arguments',
    name: one.tool,
    text: invalidInWords(one),
    detail: violationInWords(one),
    ...clausesOfInvalid(one, rollouts.now.length === stepRollouts ? rollouts.now : null),
    now: side('now'),
    before: side('before'),
    calls: one.calls,
    change,
    contribution: change?.contribution ?? null,
    isSymptom: false,
    example: one.example,
  };
}

/**
 * No field of the query language tells invalid arguments. Often they are in the same rollouts as the errors of the tool, or in all that called
 * it; else the rollouts are named, as many as a query holds. `step`: all rollouts of the step; null: not all were checked.
 */
function clausesOfInvalid({ tool, rollouts }: InvalidCalls, step: readonly SampleRow[] | null): Pick<Candidate, 'clauses' | 'found'> {
  const having = new Set(rollouts.now);
  const isSame = (of: (row: SampleRow) => string[]) => step !== null && step.every((row) => of(row).includes(tool) === having.has(row));
  if (isSame(({ failed }) => failed)) return { clauses: [`tool.error:${printText(tool)}`], found: null };
  if (isSame(({ called }) => called)) return { clauses: [`tool:${printText(tool)}`], found: null };
  const named = rollouts.now.slice(0, MAX_NAMED);
  return { clauses: [`id:${named.map(({ id }) => id).join(',')}`], found: named.length < rollouts.now.length ? named.length : null };
}

/** Every rollout has the property `all`. `row`: undefined where no rollout has the property. */
const momentsWith = (row: MomentColumns | undefined, all: MomentColumns): Moments => ({
  ...(row ?? momentsOf([])),
  groups: all.groups,
  n: all.n1,
  s: all.s1,
  nn: all.n1n1,
  ns: all.n1s1,
  ss: all.s1s1,
});

/** If one of these became rarer, another became more common, and only the rollouts of that one show it. */
const ALTERNATIVES: readonly string[] = ['stop', 'version', 'environment'];

const isShown = ({ kind, change }: Candidate): boolean => change === null || change.share.difference > 0 || !ALTERNATIVES.includes(kind);

/** Its share changed by more than chance. Interrupted rollouts have no reward, and are always named. */
function hasChanged({ kind, change, now, contribution }: Candidate): boolean {
  if (kind === 'interrupted') return now !== null && now.rollouts > 0;
  if (kind === 'tasks') return contribution !== null && (contribution.low > 0 || contribution.high < 0);
  return change !== null && (change.share.low > 0 || change.share.high < 0);
}
