import { isFailedAt } from '../denominators.ts';
import { figure, type MetricAnswer } from '../figure.ts';
import type { LensDefinition } from '../lens.ts';
import { passAtK } from '../pass.ts';
import { countOf, type MetricContext, placesWhere, type RolloutColumns, scoreOf } from '../rollout-columns.ts';
import { isSuccess, successRules } from '../success.ts';
import { mean } from '../summary.ts';
import { groupsOf, joinNotes, largestGroup, ungroupedNote } from './shared.ts';

/** Whether the rollout at a place is correct. Null is wrong. The success rule decides, since rLLM's `is_correct` is not uploaded. */
function correctness(columns: RolloutColumns, context: MetricContext): (at: number) => boolean {
  const rules = successRules(columns, context);
  return (at) => {
    const reward = scoreOf(columns.reward[at]);
    return reward !== null && isSuccess(reward, rules.get(columns.environment[at] ?? null)!);
  };
}

function nullNote({ reward }: RolloutColumns): string | null {
  const nulls = reward.filter((value) => scoreOf(value) === null).length;
  return nulls === 0 ? null : `null is wrong (${nulls} of ${reward.length})`;
}

function score(columns: RolloutColumns, context: MetricContext): MetricAnswer {
  const isCorrect = correctness(columns, context);
  const values = columns.reward.map((_, at) => Number(isCorrect(at)));
  return figure(mean(values), values.length, values.length, nullNote(columns));
}

/** Unbiased; a task with fewer than k attempts falls back to "any passed". */
function pass(columns: RolloutColumns, context: MetricContext, k: number): MetricAnswer {
  const isCorrect = correctness(columns, context);
  const groups = groupsOf(columns).map((group) => ({ n: group.length, c: group.filter(isCorrect).length }));
  const short = groups.filter(({ n }) => n < k).length;
  const values = groups.map(({ n, c }) => passAtK(n, c, k) ?? Number(c > 0));
  return figure(
    mean(values),
    groups.length,
    groups.length,
    joinNotes(short > 0 ? `${short} groups have fewer than ${k}: any-pass` : null, ungroupedNote(columns), nullNote(columns)),
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
      parameters: (columns, context) => Array.from({ length: context.n ?? largestGroup(columns) }, (_, i) => String(i + 1)),
      compute: (columns, context, k) => pass(columns, context, Number(k)),
    },
    {
      key: 'errors',
      label: 'Errors',
      formula: 'count of rollouts with an error',
      needs: ['failure', 'stop'],
      compute: (columns) =>
        figure(placesWhere(columns, (at) => isFailedAt(columns, at)).length, countOf(columns), countOf(columns), 'a count'),
    },
  ],
};
