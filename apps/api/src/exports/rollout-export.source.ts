import type { CurriculumTask, ExportedMessage, ExportedRollout, ExportedRow, PairOf, Positioned } from '@palestra/exports';
import { isLearnable, preferencePairs, redactMessages, redactNarrow, splitTurns } from '@palestra/exports';
import type { Lens } from '@palestra/protocol';
import { type CompiledQuery, needsTexts } from '@palestra/query';
import type pg from 'pg';
import { selectQueryRows, withTexts } from '../rollouts/query-rows.sql.ts';
import { lensColumns } from './lens-columns.ts';
import { groupId, narrowRollout } from './narrow-rollout.ts';
import type { ExportMessages, MessagePlace } from './rollout-export.messages.ts';
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
/** Bytes of messages that are read at a time; one rollout may be more. */
const MESSAGE_BYTES = 8 * 1024 * 1024;

/** What is exported. */
export interface ExportScope {
  org: { id: string; name: string };
  /** Ascending. */
  runSeqs: readonly number[];
  asOf: string;
  where: Condition | null;
  /** Of regexes, which the database does not see. */
  postFilter: CompiledQuery['postFilter'];
  redact: boolean;
  lens: Lens;
}

/** Where a stream goes on: in a run, after the row of that keyset; or after a task. */
export type ExportCursor = { run: number; at: string[] } | { task: number };

/** A narrow row with what is needed to find its messages. */
type Placed = ExportedRow & { place: MessagePlace & { bytes: number }; runSeq: number; phaseCode: number };

interface LearnableTask {
  id: number;
  n: number;
  solved: number;
  /** A rollout of it. */
  example: string;
}

/** The rollouts of a scope, read page by page as somebody asks for them. Nothing is kept between pages. */
export class ExportSource {
  constructor(
    private readonly pool: pg.Pool,
    private readonly messages: ExportMessages,
    private readonly scope: ExportScope,
    private readonly signal: AbortSignal,
  ) {}

  async *narrow(from: ExportCursor | null): AsyncGenerator<Positioned<ExportedRow, ExportCursor>> {
    for await (const row of this.#placed('arrival', from, NARROW_PAGE)) yield { row: this.#shown(row), cursor: arrivalOf(row) };
  }

  async *rollouts(from: ExportCursor | null): AsyncGenerator<Positioned<ExportedRollout, ExportCursor>> {
    for await (const batch of batches(this.#placed('arrival', from, PAGE), ({ place }) => place.bytes)) {
      const messages = await this.#read(batch.map(({ place }) => place));
      for (const row of batch) yield { row: this.#whole(row, messages), cursor: arrivalOf(row) };
    }
  }

  async *pairs(from: ExportCursor | null): AsyncGenerator<Positioned<PairOf<ExportedRollout>, ExportCursor>> {
    const pairs = preferencePairs(this.#placed('group', from, NARROW_PAGE));
    for await (const batch of batches(pairs, ({ chosen, rejected }) => chosen.place.bytes + rejected.place.bytes)) {
      const messages = await this.#read(batch.flatMap(({ chosen, rejected }) => [chosen.place, rejected.place]));
      for (const { chosen, rejected, group_n } of batch) {
        const row = { chosen: this.#whole(chosen, messages), rejected: this.#whole(rejected, messages), group_n };
        yield { row, cursor: afterGroupOf(chosen) };
      }
    }
  }

  /** Tasks that are sometimes solved, with the question as the first of their rollouts was asked it. */
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
        const messages = (await this.#read([placeOf(detail)])).get(example)!;
        const { prompt } = splitTurns(this.scope.redact ? redactMessages(messages) : messages);
        if (prompt.length === 0) continue;
        yield {
          row: { prompt, env_name: environment, split: split ?? 'train', task_index, solve_rate: solved / n, n },
          cursor: { task: id },
        };
      }
    }
  }

  async *#learnable(afterTask: number): AsyncGenerator<LearnableTask> {
    const { runSeqs, asOf, where } = this.scope;
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

  /** null: no regex, everything is in it. */
  async #acceptedSeqs(seqs: readonly string[]): Promise<Set<string> | null> {
    if (!this.scope.postFilter) return null;
    const accepted = new Set<string>();
    for (let at = 0; at < seqs.length; at += PAGE) {
      const rows = (await selectDetails(this.pool, seqs.slice(at, at + PAGE))).map((row) => this.#place(row, 0, undefined));
      for (const { place } of await this.#accepted(rows)) accepted.add(place.seq);
    }
    return accepted;
  }

  async *#placed(order: ExportOrder, from: ExportCursor | null, limit: number): AsyncGenerator<Placed> {
    const { runSeqs, asOf, where } = this.scope;
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

  async #withGroups(runSeq: number, page: readonly DetailRow[]): Promise<Placed[]> {
    const keys = [...new Set(page.flatMap(({ group_key }) => group_key ?? []))];
    const rewards = keys.length === 0 ? [] : await selectGroupRewards(this.pool, runSeq, this.scope.asOf, keys);
    const groups = new Map(rewards.map((group) => [groupId(group), group]));
    return page.map((row) => this.#place(row, runSeq, row.group_key === null ? undefined : groups.get(groupId(row))));
  }

  #place(row: DetailRow, runSeq: number, group: Parameters<typeof narrowRollout>[2]): Placed {
    // A copy of so many fields would be slow to make, and slower to read.
    const { org, lens } = this.scope;
    return Object.assign(narrowRollout(row, org.name, group), lensColumns(lens, row), {
      place: placeOf(row),
      runSeq,
      phaseCode: row.phase,
    });
  }

  async #accepted(rows: readonly Placed[]): Promise<readonly Placed[]> {
    const filter = this.scope.postFilter;
    if (!filter) return rows;
    const accepted: Placed[] = [];
    for await (const batch of batches(rows, ({ place }) => place.bytes)) {
      const places = batch.map(({ place }) => place);
      const found = await selectQueryRows(
        this.pool,
        places.map(({ seq }) => seq),
      );
      const messages = needsTexts(filter.query) ? await this.#read(places) : null;
      for (const row of batch) {
        // One that has been erased meanwhile is in neither.
        const asked = found.get(row.place.seq);
        if (asked && filter.accepts(messages ? withTexts(asked, messages.get(row.place.seq)!) : asked)) accepted.push(row);
      }
    }
    return accepted;
  }

  #read(places: readonly MessagePlace[]): Promise<Map<string, ExportedMessage[]>> {
    this.signal.throwIfAborted();
    return this.messages.read(this.pool, this.scope.org.id, places);
  }

  #shown(row: Placed): ExportedRow {
    return this.scope.redact ? redactNarrow(row) : row;
  }

  #whole(row: Placed, messages: Map<string, ExportedMessage[]>): ExportedRollout {
    const own = messages.get(row.place.seq)!;
    return Object.assign(this.#shown(row), { messages: this.scope.redact ? redactMessages(own) : own });
  }
}

const placeOf = (row: DetailRow) => ({ seq: row.seq, id: row.id, day: row.day, sealed: row.sealed, bytes: Number(row.bytes) });

function keysetOf({ place, group_key, phaseCode, step }: Placed, order: ExportOrder): string[] {
  return order === 'arrival' ? [place.seq] : [group_key!, String(phaseCode), String(step ?? -1), place.seq];
}

const arrivalOf = (row: Placed): ExportCursor => ({ run: row.runSeq, at: keysetOf(row, 'arrival') });

const LAST_SEQ = '9223372036854775807';

/** After the whole group, of which a pair is all there is. */
function afterGroupOf(row: Placed): ExportCursor {
  return { run: row.runSeq, at: [...keysetOf(row, 'group').slice(0, -1), LAST_SEQ] };
}

/** Items whose messages may be in memory together. */
async function* batches<T>(items: AsyncIterable<T> | Iterable<T>, bytesOf: (item: T) => number): AsyncGenerator<T[]> {
  let batch: T[] = [];
  let bytes = 0;
  for await (const item of items) {
    const size = bytesOf(item);
    if (batch.length > 0 && (batch.length >= PAGE || bytes + size > MESSAGE_BYTES)) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(item);
    bytes += size;
  }
  if (batch.length > 0) yield batch;
}
