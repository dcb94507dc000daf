import type {
  CurriculumTask,
  ExportedMessage,
  ExportedRollout,
  ExportedRow,
  LabelledRollout,
  PairOf,
  Positioned,
  ReviewOrigin,
} from '@palestra/exports';
import { isLearnable, preferencePairs, redactMessages, redactNarrow, splitTurns } from '@palestra/exports';
import type { Lens } from '@palestra/protocol';
import { type CompiledQuery, needsTexts } from '@palestra/query';
import type pg from 'pg';
import type { UntrustedWork } from '../platform/untrusted-work/untrusted-work.ts';
import { filterRows } from '../rollouts/filter-rows.ts';
import { selectQueryRows, withTexts } from '../rollouts/query-rows.sql.ts';
import { type ReviewedItem, selectReviewedItems } from '../reviews/review-export.sql.ts';
import { MAX_WHOLE_BYTES, sizeOf } from '../store/storage/whole-rollout.ts';
import { lensColumns } from './lens-columns.ts';
import { groupId, narrowRollout } from './narrow-rollout.ts';
import { readAhead } from './read-ahead.ts';
import { pairOfReview } from './review-pair.ts';
import type { ExportMessages, MessageLocation } from './rollout-export.messages.ts';
import {
  type Condition,
  type DetailRow,
  type ExportOrder,
  selectDetailPage,
  selectDetails,
  selectGroupRewards,
  selectTaskNames,
  taskRewards,
} from './rollout-export.rows.sql.ts';

const NARROW_PAGE = 500;
const PAGE = 250;
/** Messages in memory; one rollout may have more. */
const BATCH_BYTES = 8 * 1024 * 1024;

/** The rollouts to export. */
export interface ExportSelection {
  org: { id: string; name: string };
  /** Ascending. */
  runSeqs: readonly number[];
  asOf: string;
  where: Condition | null;
  /** The filter of regexes, which the database cannot evaluate. */
  postFilter: CompiledQuery['postFilter'];
  redact: boolean;
  lens: Lens;
  /** Its answers in place of runs and query; null: no review. */
  queue: Omit<ReviewOrigin, 'answers'> | null;
}

/** Position of a stream: in a run after the row of the keyset, after a task, or after an item of a review. */
export type ExportCursor = { run: number; at: string[] } | { task: number } | { item: number };

type SizedLocation = MessageLocation & { bytes: number };

/** A narrow row with the location of its messages. */
type LocatedRow = ExportedRow & { location: SizedLocation; runSeq: number; phaseCode: number };

interface LearnableTask {
  id: number;
  n: number;
  solved: number;
  /** A rollout of the task. */
  example: string;
}

/** Reads the selected rollouts page by page on demand. Nothing is kept between pages. */
export class ExportSource {
  constructor(
    private readonly pool: pg.Pool,
    private readonly messages: ExportMessages,
    private readonly work: UntrustedWork,
    private readonly selection: ExportSelection,
    private readonly signal: AbortSignal,
    /** Gets the id of each rollout whose messages are too large, which is left out; perhaps more than once. */
    private readonly onTooLarge: (rolloutId: string) => void,
  ) {}

  async *narrow(from: ExportCursor | null): AsyncGenerator<Positioned<ExportedRow, ExportCursor>> {
    for await (const row of this.#located('arrival', from, NARROW_PAGE)) yield { row: this.#redacted(row), cursor: arrivalOf(row) };
  }

  async *rollouts(from: ExportCursor | null): AsyncGenerator<Positioned<ExportedRollout, ExportCursor>> {
    const located = batches(this.#located('arrival', from, PAGE), ({ location }) => sizeOf(location));
    for await (const { batch, messages } of readAhead(this.#withTranscripts(located))) {
      for (const row of batch) {
        const found = messages.get(row.location.seq);
        if (found) yield { row: this.#withMessages(row, found), cursor: arrivalOf(row) };
      }
    }
  }

  async *#withTranscripts(batchesOfRows: AsyncIterable<LocatedRow[]>) {
    for await (const batch of batchesOfRows) yield { batch, messages: await this.#read(batch.map(({ location }) => location)) };
  }

  async *pairs(from: ExportCursor | null): AsyncGenerator<Positioned<PairOf<ExportedRollout>, ExportCursor>> {
    if (this.selection.queue !== null) {
      for await (const { item, rollouts, review } of this.#reviewed(from)) {
        const [a, b] = rollouts;
        const pair = a && b && pairOfReview(a, b, review);
        if (pair) yield { row: pair, cursor: { item } };
      }
      return;
    }
    const pairs = preferencePairs(this.#located('group', from, NARROW_PAGE));
    for await (const batch of batches(pairs, ({ chosen, rejected }) => sizeOf(chosen.location) + sizeOf(rejected.location))) {
      const messages = await this.#read(batch.flatMap(({ chosen, rejected }) => [chosen.location, rejected.location]));
      for (const { chosen, rejected, group_n } of batch) {
        const [good, bad] = [messages.get(chosen.location.seq), messages.get(rejected.location.seq)];
        if (!good || !bad) continue;
        const row = { chosen: this.#withMessages(chosen, good), rejected: this.#withMessages(rejected, bad), group_n };
        yield { row, cursor: afterGroupOf(chosen) };
      }
    }
  }

  async *labels(from: ExportCursor | null): AsyncGenerator<Positioned<LabelledRollout<ExportedRollout>, ExportCursor>> {
    for await (const { item, rollouts, review } of this.#reviewed(from)) {
      if (rollouts[0]) yield { row: { rollout: rollouts[0], review }, cursor: { item } };
    }
  }

  /** Items of the review with their rollouts. A rollout that was erased meanwhile is absent. */
  async *#reviewed(from: ExportCursor | null) {
    const { org, queue } = this.selection;
    let after = from && 'item' in from ? from.item : 0;
    for (;;) {
      const page = await selectReviewedItems(this.pool, org.id, queue!.queue_id, after, PAGE);
      const seqs = page.flatMap(seqsOf);
      const rows = new Map((await selectDetails(this.pool, seqs)).map((row) => [row.seq, this.#locate(row, 0, undefined)]));
      const bytesOf = (item: ReviewedItem) =>
        seqsOf(item).reduce((sum, seq) => sum + (rows.has(seq) ? sizeOf(rows.get(seq)!.location) : 0), 0);
      for await (const batch of batches(page, bytesOf)) {
        const found = batch.flatMap(seqsOf).flatMap((seq) => rows.get(seq) ?? []);
        const messages = await this.#read(found.map(({ location }) => location));
        for (const item of batch) {
          const rollouts = seqsOf(item).map((seq) => {
            const [row, read] = [rows.get(seq), messages.get(seq)];
            return row && read && this.#withMessages(row, read);
          });
          yield { item: item.position, rollouts, review: { ...queue!, answers: item.answers } };
        }
      }
      if (page.length < PAGE) return;
      after = page.at(-1)!.position;
    }
  }

  /** Tasks that are solved sometimes, with the prompt of their first rollout. */
  async *tasks(from: ExportCursor | null): AsyncGenerator<Positioned<CurriculumTask, ExportCursor>> {
    const afterTask = from && 'task' in from ? from.task : 0;
    for await (const batch of batches(this.#learnable(afterTask), () => 1)) {
      const names = await selectTaskNames(
        this.pool,
        batch.map(({ id }) => id),
      );
      const details = new Map(
        (
          await selectDetails(
            this.pool,
            batch.map(({ example }) => example),
          )
        ).map((row) => [row.seq, row]),
      );
      for (const { id, n, solved, example } of batch) {
        const { environment, split, task_index } = names.get(id)!;
        const detail = details.get(example);
        if (!detail || environment === null || task_index === null) continue;
        const messages = (await this.#read([locationOf(detail)])).get(example);
        if (!messages) continue;
        const { prompt } = splitTurns(this.selection.redact ? redactMessages(messages) : messages);
        if (prompt.length === 0) continue;
        yield {
          row: { prompt, env_name: environment, split: split ?? 'train', task_index, solve_rate: solved / n, n },
          cursor: { task: id },
        };
      }
    }
  }

  async *#learnable(afterTask: number): AsyncGenerator<LearnableTask> {
    const { runSeqs, asOf, where } = this.selection;
    let task = null as LearnableTask | null;
    for await (const page of taskRewards(this.pool, { runSeqs, asOf, afterTask, where })) {
      this.signal.throwIfAborted();
      const accepted = await this.#acceptedSeqs(page.map(({ seq }) => seq));
      for (const { seq, task_id, solved } of page) {
        if (accepted && !accepted.has(seq)) continue;
        if (task?.id !== task_id) {
          if (task && isLearnable(task.solved / task.n)) yield task;
          task = { id: task_id, n: 0, solved: 0, example: seq };
        }
        task.n += 1;
        if (solved) task.solved += 1;
      }
    }
    if (task && isLearnable(task.solved / task.n)) yield task;
  }

  /** null: no regex, all are accepted. */
  async #acceptedSeqs(seqs: readonly string[]): Promise<Set<string> | null> {
    if (!this.selection.postFilter) return null;
    const accepted = new Set<string>();
    for (let at = 0; at < seqs.length; at += PAGE) {
      const rows = (await selectDetails(this.pool, seqs.slice(at, at + PAGE))).map((row) => this.#locate(row, 0, undefined));
      for (const { location } of await this.#accepted(rows)) accepted.add(location.seq);
    }
    return accepted;
  }

  async *#located(order: ExportOrder, from: ExportCursor | null, limit: number): AsyncGenerator<LocatedRow> {
    const { runSeqs, asOf, where } = this.selection;
    const start = from && 'run' in from ? from : null;
    for (const runSeq of runSeqs.filter((seq) => start === null || seq >= start.run)) {
      let after = start?.run === runSeq ? start.at : null;
      for (;;) {
        this.signal.throwIfAborted();
        const page = await selectDetailPage(this.pool, { runSeq, asOf, order, after, limit, where });
        const rows = await this.#withGroups(runSeq, page);
        yield* await this.#accepted(rows);
        if (page.length < limit) break;
        after = keysetOf(rows.at(-1)!, order);
      }
    }
  }

  async #withGroups(runSeq: number, page: readonly DetailRow[]): Promise<LocatedRow[]> {
    const keys = [...new Set(page.flatMap(({ group_key }) => group_key ?? []))];
    const rewards = keys.length === 0 ? [] : await selectGroupRewards(this.pool, runSeq, this.selection.asOf, keys);
    const groups = new Map(rewards.map((group) => [groupId(group), group]));
    return page.map((row) => this.#locate(row, runSeq, row.group_key === null ? undefined : groups.get(groupId(row))));
  }

  #locate(row: DetailRow, runSeq: number, group: Parameters<typeof narrowRollout>[2]): LocatedRow {
    // Changes the object in place, because a copy of so many fields is slow.
    const { org, lens } = this.selection;
    return Object.assign(narrowRollout(row, org.name, group), lensColumns(lens, row), {
      location: locationOf(row),
      runSeq,
      phaseCode: row.phase,
    });
  }

  async #accepted(rows: readonly LocatedRow[]): Promise<readonly LocatedRow[]> {
    const filter = this.selection.postFilter;
    if (!filter) return rows;
    const accepted: LocatedRow[] = [];
    for await (const batch of batches(rows, ({ location }) => sizeOf(location))) {
      const locations = batch.map(({ location }) => location);
      const found = await selectQueryRows(
        this.pool,
        locations.map(({ seq }) => seq),
      );
      const messages = needsTexts(filter.query) ? await this.#read(locations) : null;
      const candidates = batch.flatMap((located) => {
        // A rollout that was erased meanwhile is in neither.
        const candidate = found.get(located.location.seq);
        const texts = messages?.get(located.location.seq);
        if (!candidate || (messages && !texts)) return [];
        return { located, row: texts ? withTexts(candidate, texts) : candidate };
      });
      const { accepted: kept } = await filterRows(this.work, this.selection.org.id, filter, candidates);
      accepted.push(...kept.map(({ located }) => located));
    }
    return accepted;
  }

  /** Without rollouts that are too large. */
  #read(locations: readonly SizedLocation[]): Promise<Map<string, ExportedMessage[]>> {
    this.signal.throwIfAborted();
    const fitting = locations.filter((location) => sizeOf(location) <= MAX_WHOLE_BYTES);
    if (fitting.length < locations.length) for (const location of locations) if (!fitting.includes(location)) this.onTooLarge(location.id);
    return this.messages.read(this.pool, this.selection.org.id, fitting);
  }

  #redacted(row: LocatedRow): ExportedRow {
    return this.selection.redact ? redactNarrow(row) : row;
  }

  #withMessages(row: LocatedRow, messages: ExportedMessage[]): ExportedRollout {
    return Object.assign(this.#redacted(row), { messages: this.selection.redact ? redactMessages(messages) : messages });
  }
}

const seqsOf = ({ rollout_seq, other_seq }: ReviewedItem): string[] => (other_seq === null ? [rollout_seq] : [rollout_seq, other_seq]);

const locationOf = ({ seq, id, day, messages, bytes }: DetailRow) => ({ seq, id, day, messages, bytes: Number(bytes) });

function keysetOf({ location, group_key, phaseCode, step }: LocatedRow, order: ExportOrder): string[] {
  return order === 'arrival' ? [location.seq] : [group_key!, String(phaseCode), String(step ?? -1), location.seq];
}

const arrivalOf = (row: LocatedRow): ExportCursor => ({ run: row.runSeq, at: keysetOf(row, 'arrival') });

const LAST_SEQ = '9223372036854775807';

/** After the whole group, because a group has one pair. */
function afterGroupOf(row: LocatedRow): ExportCursor {
  return { run: row.runSeq, at: [...keysetOf(row, 'group').slice(0, -1), LAST_SEQ] };
}

/** Batches of items whose messages fit into memory together. */
async function* batches<T>(items: AsyncIterable<T> | Iterable<T>, bytesOf: (item: T) => number): AsyncGenerator<T[]> {
  let batch: T[] = [];
  let bytes = 0;
  for await (const item of items) {
    const size = bytesOf(item);
    if (batch.length > 0 && (batch.length >= PAGE || bytes + size > BATCH_BYTES)) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(item);
    bytes += size;
  }
  if (batch.length > 0) yield batch;
}
