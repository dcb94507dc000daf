import { Injectable } from '@nestjs/common';
import {
  advantages,
  type GroupStats,
  passAtKOfGroup,
  powersOfTwo,
  stdFromStats,
  ZERO_VARIANCE_TOLERANCE,
  type ZeroVarianceKind,
  zeroVarianceKind,
} from '@palestra/metrics';
import { type GroupListQuery, type GroupQuery, PalestraError, PHASES, STOP_REASONS, UNSCORED_FAILURES } from '@palestra/protocol';
import { type RunSettings, trainedReward } from '@palestra/rollouts';
import { decodeCursor, encodeCursor, exactly, FLOAT64, INT16, INT32, INT64 } from '../../platform/http/cursor.ts';
import { Database } from '../../platform/database/database.ts';
import { codeOf, wordOf } from '../../store/vocabulary-codes.ts';
import { rolloutQuery } from '../../rollouts/rollout-query.ts';
import { presentRolloutRow } from '../../rollouts/rollout.presenter.ts';
import { type GroupMember, selectMembers } from './group-members.sql.ts';
import { FIRST_GROUP_PARAMETER, type GroupPage, type GroupRecord, groupSorts, selectGroup, selectGroups } from './run-groups.sql.ts';
import type { RunScope } from '../run-scope.ts';

/** Groups: the samples of one task at one step. */
@Injectable()
export class RunGroupsService {
  constructor(private readonly database: Database) {}

  async list(run: RunScope, request: GroupListQuery) {
    const query =
      request.q === undefined || request.q.trim() === ''
        ? null
        : await rolloutQuery(this.database.pool, request.q, [run.seq], FIRST_GROUP_PARAMETER);
    if (query?.compiled.postFilter) throw regexOfGroups(request.q!);
    const rows = await selectGroups(this.database.pool, {
      runSeq: run.seq,
      from: request.steps?.from ?? -1,
      to: request.steps?.to ?? 2_147_483_647,
      phase: request.phase === undefined ? null : codeOf(PHASES, request.phase),
      sort: request.sort,
      order: request.order,
      limit: request.limit + 1,
      after: afterOf(request),
      where: query?.where,
    });
    const shown = rows.slice(0, request.limit);
    const last = shown.at(-1);
    const next =
      rows.length > request.limit && last
        ? encodeCursor([request.sort, request.order, last.sort_value, last.group_key, String(last.phase), String(last.step)])
        : null;
    return { groups: shown.map(presentGroup), next, query: query?.text ?? null, incomplete: false };
  }

  /** Throws `group_not_found`. */
  async get(run: RunScope, key: string, { phase, step }: GroupQuery) {
    const { pool } = this.database;
    const isKey = /^-?\d{1,19}$/.test(key) && BigInt.asIntN(64, BigInt(key)) === BigInt(key);
    const group = isKey ? await selectGroup(pool, run.seq, key, phase === undefined ? null : codeOf(PHASES, phase), step ?? null) : null;
    if (!group) throw new PalestraError('group_not_found');
    const members = await selectMembers(pool, run.seq, group);
    const advantage = advantages(members.map(({ reward }) => reward));
    const trained = members.map((member) => trainedRewardOf(member, run.settings));
    const { scored, successes } = group;
    return {
      ...presentGroup(group),
      pass: powersOfTwo(scored).map((k) => ({ k, value: passAtKOfGroup(scored, successes, k) })),
      rollouts: members.map((member, at) => ({
        ...presentRolloutRow(member),
        advantage: advantage[at]?.normalised ?? null,
        advantage_centred: advantage[at]?.centred ?? null,
        reward_trained: trained[at]!,
      })),
      missing: Math.max(0, (group.n_expected ?? group.n) - group.n),
      note: noteOf(members, trained),
    };
  }
}

export function presentGroup(group: GroupRecord) {
  const stats = statsOf(group);
  const std = stdFromStats(stats, 1);
  return {
    key: group.group_key,
    step: group.step < 0 ? null : group.step,
    phase: wordOf(PHASES, group.phase) ?? ('unknown' as const),
    environment: group.environment,
    task:
      group.task_id === null ? null : { id: String(group.task_id), key: group.task_key ?? '', index: group.task_index, split: group.split },
    received: group.n,
    expected: group.n_expected,
    complete: group.n_expected === null ? null : group.n >= group.n_expected,
    scored: group.scored,
    errors: group.errors,
    successes: group.successes,
    mean: group.scored === 0 ? null : group.sum / group.scored,
    std: std !== null && group.max! - group.min! <= ZERO_VARIANCE_TOLERANCE ? 0 : std,
    min: group.min,
    max: group.max,
    zero_variance: zeroVarianceKind(stats) satisfies ZeroVarianceKind | null,
  };
}

const statsOf = (group: GroupRecord): GroupStats => ({
  n: group.n,
  scored: group.scored,
  c: group.successes,
  sum: group.sum,
  sumsq: group.sum_squares,
  min: group.min,
  max: group.max,
});

function afterOf({ cursor, sort, order }: GroupListQuery): GroupPage['after'] {
  if (cursor === undefined) return undefined;
  const { type } = groupSorts[sort];
  const sortValue = type === 'int' ? INT32 : FLOAT64;
  const [, , value, key, phase, step] = decodeCursor(cursor, exactly(sort), exactly(order), sortValue, INT64, INT16, INT32);
  return { value: value!, key: key!, phase: phase!, step: step! };
}

/** Null when the run lacks the settings, or reduces by the minimum of the step rewards, which the row does not contain. */
function trainedRewardOf(member: GroupMember, settings: RunSettings): number | null {
  if (settings.rewardReduce === 'min' && member.reward_steps > 1) return null;
  return trainedReward(
    {
      source: (member.source ?? 'generic') as Parameters<typeof trainedReward>[0]['source'],
      stop: wordOf(STOP_REASONS, member.stop) ?? 'unknown',
      failureClass: wordOf(UNSCORED_FAILURES, member.failure),
      rewardSteps: member.reward_steps,
      rewardSum: member.reward ?? member.partial_reward,
      rewardMax: member.max_reward,
      rewardMin: member.reward_steps === 1 ? (member.reward ?? member.partial_reward) : null,
      rewardFinal: member.last_reward,
    },
    settings,
  );
}

function noteOf(members: readonly GroupMember[], trained: readonly (number | null)[]): string | null {
  if (trained.some((reward) => reward !== null)) return 'Advantages use the rewards of the environment. The trainer used reward_trained.';
  const postProcessed = members.some(({ source }) => source === 'slime/miles' || source === 'tinker');
  return postProcessed
    ? 'Environment reward, before trainer post-processing: the run’s settings do not say rewardReduce, nonterminalReward, minReward, maxReward.'
    : null;
}

function regexOfGroups(q: string): PalestraError {
  const msg = 'A regex selects rollouts, not groups. Use words, or search rollouts.';
  return new PalestraError('invalid_query', { detail: [{ type: 'value_error', loc: ['query', 'q'], msg, input: q.slice(0, 200) }] });
}
