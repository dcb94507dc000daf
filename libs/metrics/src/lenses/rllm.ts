import { isFailed } from '../denominators.ts';
import { figure, type MetricAnswer, type MetricContext, type RolloutFacts, scoreOf } from '../facts.ts';
import type { LensDefinition } from '../lens.ts';
import { passAtK } from '../pass.ts';
import { isSuccess, successRules } from '../success.ts';
import { mean } from '../summary.ts';
import { groupsOf, joinNotes, largestGroup, ungroupedNote } from './shared.ts';

type Rows = readonly RolloutFacts[];

/** Decision 14.14: null is wrong. Whether a reward is right is the success rule, since rLLM's `is_correct` is not uploaded. */
function correctness(rows: Rows, context: MetricContext): (row: RolloutFacts) => boolean {
  const rules = successRules(rows, context);
  return (row) => {
    const reward = scoreOf(row);
    return reward !== null && isSuccess(reward, rules.get(row.environment)!);
  };
}

function nullNote(rows: Rows): string | null {
  const nulls = rows.filter((row) => scoreOf(row) === null).length;
  return nulls === 0 ? null : `null is wrong (${nulls} of ${rows.length})`;
}

function score(rows: Rows, context: MetricContext): MetricAnswer {
  const isCorrect = correctness(rows, context);
  return figure(mean(rows.map((row) => Number(isCorrect(row)))), rows.length, rows.length, nullNote(rows));
}

/** Unbiased; a task with fewer than k attempts falls back to "any passed". */
function pass(rows: Rows, context: MetricContext, k: number): MetricAnswer {
  const isCorrect = correctness(rows, context);
  const groups = groupsOf(rows).map((group) => ({ n: group.length, c: group.filter(isCorrect).length }));
  const short = groups.filter(({ n }) => n < k).length;
  const values = groups.map(({ n, c }) => passAtK(n, c, k) ?? Number(c > 0));
  return figure(
    mean(values),
    groups.length,
    groups.length,
    joinNotes(short > 0 ? `${short} groups have fewer than ${k}: any-pass` : null, ungroupedNote(rows), nullNote(rows)),
  );
}

export const rllmLens: LensDefinition = {
  lens: 'rllm',
  source: 'rllm/eval/results.py @ 9beb6e0f',
  metrics: [
    { key: 'score', label: 'Score', formula: 'correct rollouts / rollouts', needs: ['reward'], compute: score },
    {
      key: 'pass@{k}',
      label: 'pass@k',
      formula: 'unbiased over all tasks; n < k falls back to any-pass',
      needs: ['group', 'reward'],
      parameters: (rows, context) => Array.from({ length: context.n ?? largestGroup(rows) }, (_, i) => String(i + 1)),
      compute: (rows, context, k) => pass(rows, context, Number(k)),
    },
    {
      key: 'errors',
      label: 'Errors',
      formula: 'count of rollouts with an error',
      needs: ['failure', 'stop'],
      compute: (rows) => figure(rows.filter(isFailed).length, rows.length, rows.length, 'a count'),
    },
  ],
};
