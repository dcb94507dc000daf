import { Injectable } from '@nestjs/common';
import { changeOf, mixOf, type PropertyChange, rankCauses, type StepMove } from '@palestra/metrics';
import { type MoveCause, PHASES } from '@palestra/protocol';
import { printText } from '@palestra/query';
import { MESSAGE_FLAGS } from '@palestra/rollouts';
import { Database } from '../../platform/database/database.ts';
import { TranscriptReader } from '../../store/storage/transcript-reader.service.ts';
import { wordOf } from '../../store/vocabulary-codes.ts';
import { selectTaskNames } from '../insights/compare-runs.sql.ts';
import { clausesOf, nameOf, propertyInWords, tasksInWords } from './cause-words.ts';
import {
  type ExampleRow,
  MAX_ROLLOUTS,
  type MoveScope,
  type PropertyRow,
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
const MAX_QUERY = 1_500;

interface Candidate {
  kind: MoveCause['kind'];
  name: string;
  text: string;
  clauses: string[];
  now: MoveCause['now'];
  before: MoveCause['before'];
  calls: MoveCause['calls'];
  change: Pick<PropertyChange, 'share' | 'effect'> | null;
  contribution: PropertyChange['contribution'];
  /** Length: failing calls make rollouts longer. */
  isSymptom: boolean;
  /** `seq` of the first rollout that shows it. */
  example: string | null;
}

/** What else changed at a step, from counts of its rollouts and of those of its baseline. */
@Injectable()
export class MoveCauses {
  constructor(
    private readonly database: Database,
    private readonly transcripts: TranscriptReader,
  ) {}

  /** The causes in the order of their weight. `cut`: a step has more rollouts than are counted. */
  async of(scope: MoveScope, { step, baseline, now, before, estimate }: StepMove): Promise<{ causes: MoveCause[]; cut: boolean }> {
    const { pool } = this.database;
    const [rows, tasks] = await Promise.all([selectProperties(pool, scope, step, baseline), selectTaskShares(pool, scope, step, baseline)]);
    const all = rows.find(({ kind }) => kind === 'all');
    if (!all) return { causes: [], cut: false };
    const properties = rows
      .filter((row) => row !== all)
      .map((row) => candidateOf(row, all))
      .filter(isShown);
    const mix = await this.#taskMix(tasks);
    const ranked = rankCauses([...properties, ...(mix ? [mix] : [])], estimate.difference)
      .filter(({ cause, isLikely }) => isLikely || hasChanged(cause))
      .slice(0, MAX_CAUSES);
    const examples = await this.#examples(
      scope.runSeq,
      ranked.map(({ cause }) => cause),
    );
    const phase = wordOf(PHASES, scope.phase);
    const shared = [`step:${step}`, ...(phase && phase !== 'unknown' ? [`phase:${phase}`] : [])];
    const causes = ranked.map(({ cause, explained, isLikely }): MoveCause => {
      const { kind, name, text, clauses, calls, change, contribution } = cause;
      const q = [...shared, ...clauses].join(' ');
      return {
        kind,
        name,
        text,
        q: q.length > MAX_QUERY ? null : q,
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
    return { causes, cut: all.now.count < now.rollouts || all.before.count < before.rollouts || all.now_rollouts === MAX_ROLLOUTS };
  }

  /** Null without tasks, or if the same tasks were played as often as before. */
  async #taskMix(tasks: readonly TaskRow[]): Promise<Candidate | null> {
    const shares = tasks.map(({ now, before, count, sum, sum_squares: sumOfSquares }) => ({
      now,
      before,
      history: { count, sum, sumOfSquares },
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
      clauses: keys.length === 0 ? [] : [`task:${keys.map(printText).join(',')}`],
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
      causes.flatMap(({ example }) => example ?? []),
    );
    const calls = new Set(causes.filter(({ kind }) => kind === 'tool_error').slice(0, MAX_CALLS));
    const found = new Map<Candidate, NonNullable<MoveCause['example']>>();
    for (const cause of causes) {
      const row = cause.example === null ? undefined : rows.get(cause.example);
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
  const change = changeOf({ now: all.now, before: all.before }, { now: row.now, before: row.before });
  const { kind, calls } = row;
  const side = (sums: { errors: number; calls: number | null }) => ({ errors: sums.errors, calls: sums.calls ?? 0 });
  return {
    kind: kind as Candidate['kind'],
    name: nameOf(row),
    text: propertyInWords(row, all),
    clauses: clausesOf(row),
    now: { rollouts: row.now_rollouts, of: all.now_rollouts },
    before: { rollouts: row.before_rollouts, of: all.before_rollouts },
    calls: calls && { now: side(calls.now), before: side(calls.before) },
    change,
    contribution: kind === 'interrupted' ? null : (change?.contribution ?? null),
    isSymptom: kind === 'turns' || kind === 'tokens',
    example: row.example,
  };
}

/** If one of these became rarer, another became more common, and only the rollouts of that one show it. */
const ALTERNATIVES: readonly string[] = ['stop', 'version', 'environment'];

const isShown = ({ kind, change }: Candidate): boolean => change === null || change.share.difference > 0 || !ALTERNATIVES.includes(kind);

/** Its share changed by more than chance. Interrupted rollouts have no reward, and are always named. */
function hasChanged({ kind, change, now, contribution }: Candidate): boolean {
  if (kind === 'interrupted') return now !== null && now.rollouts > 0;
  if (kind === 'tasks') return contribution !== null && (contribution.low > 0 || contribution.high < 0);
  return change !== null && (change.share.low > 0 || change.share.high < 0);
}
