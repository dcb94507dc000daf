import { Injectable } from '@nestjs/common';
import { PalestraError, VERIFICATIONS } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { Database } from '../platform/database/database.ts';
import { ReadSettler } from '../store/derive/read-settler.service.ts';
import { wordOf } from '../store/vocabulary-codes.ts';
import { type Action, actionsOf, align } from './diff.ts';
import { FailureTexts } from './failure-texts.service.ts';
import { type Neighbour, type Neighbours, selectCalls, selectNeighbours } from './neighbours.sql.ts';
import { outlineOf, timeKind } from './outline.ts';
import { type ListRequest, RolloutListService } from './rollout-list.service.ts';
import type { RolloutSnapshot } from './rollout-snapshot.ts';
import type { RolloutRecord } from './rollout.sql.ts';
import { hasGaps, presentHeader, presentRolloutRow } from './rollout.presenter.ts';
import { RolloutService } from './rollout.service.ts';
import { SkeletonCache } from './skeleton-cache.ts';
import { TranscriptReader } from '../store/storage/transcript-reader.service.ts';

/** Actions per side of a comparison. */
const MAX_ACTIONS = 2_000;
const NO_NEIGHBOURS: Neighbours = { previous_sample: null, next_sample: null, best_sample: null, previous_step: null, next_step: null };

/** Reads of the rollout viewer, besides the messages. */
@Injectable()
export class RolloutReadsService {
  constructor(
    private readonly database: Database,
    private readonly rollouts: RolloutService,
    private readonly transcripts: TranscriptReader,
    private readonly settler: ReadSettler,
    private readonly lists: RolloutListService,
    private readonly failures: FailureTexts,
  ) {}

  readonly #skeletons = new SkeletonCache(async (head) => (await this.transcripts.skeletons([head])).get(head.seq) ?? []);

  async header({ head, record, orgName }: RolloutSnapshot) {
    // Neighbours are found by groups, which are written with the figures of their step.
    if (record !== null) await this.settler.settle([record.run_seq]);
    const [messages, neighbours, failures] = await Promise.all([
      this.#skeletons.of(head),
      record === null ? NO_NEIGHBOURS : selectNeighbours(this.database.pool, record),
      record === null ? null : this.failures.of([record]),
    ]);
    return {
      ...presentHeader(head, record, orgName, messages),
      neighbours,
      time_kind: timeKind(messages),
      failure: failures?.get(head.seq) ?? null,
    };
  }

  /** The rollouts before and after it in a list of its run, in the order of the list. */
  async beside({ record }: RolloutSnapshot, list: Pick<ListRequest, 'q' | 'sort' | 'order'>) {
    if (record === null) return { previous: null, next: null, incomplete: false };
    await this.settler.settle([record.run_seq]);
    const { previous, next, incomplete } = await this.lists.beside({ ...list, runSeqs: [record.run_seq], seq: record.seq });
    return { previous: neighbourOf(previous), next: neighbourOf(next), incomplete };
  }

  async outline({ head, record }: RolloutSnapshot) {
    const [messages, calls] = await Promise.all([this.#skeletons.of(head), selectCalls(this.database.pool, head.seq)]);
    const outline = outlineOf(messages, new Map(calls.map(({ index, duration_ms }) => [index, duration_ms])));
    return hasGaps(record) ? outline : { ...outline, missing: [] };
  }

  async calls({ head, record }: RolloutSnapshot) {
    const calls = await selectCalls(this.database.pool, head.seq);
    return {
      session: record?.sid ?? null,
      verified: wordOf(VERIFICATIONS, record?.verdict ?? null),
      latency_ms: record?.latency_ms ?? null,
      calls: calls.map(({ sid, ...call }) => ({ ...call, session: sid })),
    };
  }

  /** Throws `rollout_not_found` for either. */
  async diff(caller: Caller, a: string, b: string) {
    const left = await this.#side(caller, a);
    const right = await this.#side(caller, b);
    const rows = align(left.actions.slice(0, MAX_ACTIONS), right.actions.slice(0, MAX_ACTIONS));
    const first = rows.findIndex(({ same }) => !same);
    return {
      a: left.row,
      b: right.row,
      rows: rows.map((row) => ({ a: row.a && presentAction(row.a), b: row.b && presentAction(row.b), same: row.same })),
      first_divergence: first < 0 ? null : first,
      same: rows.filter(({ same }) => same).length,
      truncated: Math.max(left.actions.length, right.actions.length) > MAX_ACTIONS,
    };
  }

  async #side(caller: Caller, id: string) {
    const { head, record } = await this.rollouts.find(caller, id);
    if (record === null)
      throw new PalestraError('rollout_not_found', {
        detail: 'The start event of the rollout has not arrived yet. Try again after its upload.',
      });
    const release = this.rollouts.hold(caller, head);
    try {
      return { row: presentRolloutRow(record), actions: actionsOf(await this.transcripts.messages(head)) };
    } finally {
      release();
    }
  }
}

const neighbourOf = (row: RolloutRecord | undefined): Neighbour | null =>
  row === undefined ? null : { id: row.id, step: row.step, sample: row.sample, reward: row.reward };
const presentAction = ({ index, kind, tool, error, reward }: Action) => ({ index, kind, tool, error, reward });
