import { Inject, Injectable } from '@nestjs/common';
import { BlobError } from '@palestra/blobs';
import { TranscriptError } from '@palestra/rollouts/transcript';
import type { Logger } from 'pino';
import { Database } from '../../../platform/database/database.ts';
import { LOGGER } from '../../../platform/tokens.ts';
import { bisectBatch, isBlobFailure, isItemFault } from '../../bisect-batch.ts';
import { inTransaction } from '../../../platform/database/transaction.ts';
import { Quarantine } from '../../quarantine.ts';
import { messageOf, TranscriptObjects } from '../../storage/transcript-objects.service.ts';
import { selectPointers, type TranscriptPointer } from '../../storage/transcript.sql.ts';
import type { Lane } from '../derive.sql.ts';
import { RunRounds } from '../run-rounds.ts';
import { collectBlocks, markFullBlocks, selectMarkedBlocks } from './search-blocks.sql.ts';
import {
  finishIndexing,
  holdRollout,
  indexMessages,
  type IndexPosition,
  insertWords,
  type LateRollout,
  markSearched,
  type SearchedMessage,
  selectDueSearchLanes,
  selectLate,
  selectNewestUnsearched,
  selectUnsearched,
  type UnsearchedHead,
} from './search-index.sql.ts';

/** Rollouts per round. */
const BATCH = 200;
const LATE_BATCH = 20;
const BLOCKS = 50;
/** Text of one statement: it takes about a second. */
const STATEMENT_BYTES = 4 * 1024 * 1024;
/** Messages per statement. */
const MESSAGES = 200;

interface Batch {
  heads: readonly UnsearchedHead[];
  from: IndexPosition | null;
}

/**
 * Makes messages searchable: from rows, and from transcripts for rollouts whose start event arrived after they were sealed. A rollout or a
 * block that fails or takes too long is left out for a while, and the others of its batch are done.
 */
@Injectable()
export class SearchIndex {
  /** By lane: the rest of a batch that is too large for one statement. It takes turns with other batches of the lane. */
  readonly #open = new Map<number, Batch>();
  /** Lanes whose last statement was one of an open batch. */
  readonly #continued = new Set<number>();
  readonly #rounds = new RunRounds();

  constructor(
    private readonly database: Database,
    private readonly objects: TranscriptObjects,
    private readonly quarantine: Quarantine,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  /** Which of so many lanes have rollouts that are not searchable. */
  dueLanes(lanes: number): Promise<number[]> {
    return selectDueSearchLanes(this.database.pool, lanes, this.quarantine.members('search'));
  }

  /** One statement's worth of text of the runs of a lane, and in the first lane what belongs to none; answers whether there is more. */
  async round(lane: Lane = { number: 0, of: 1 }): Promise<boolean> {
    const indexed = await this.#indexBatch(lane);
    if (lane.number > 0) return indexed;
    let written = await this.#collect();
    if (indexed) return true;
    const late = await selectLate(this.database.pool, LATE_BATCH, this.quarantine.members('search'));
    for (const rollout of late) if (await this.#indexLate(rollout)) written = true;
    // Rows that arrived after the seal, and their mark, belong to the next batch.
    return written;
  }

  /** Blocks that PostgreSQL cannot collect at once, for example because they have very many words, are collected in smaller numbers. */
  async #collect(): Promise<boolean> {
    const { pool } = this.database;
    const blocks = await selectMarkedBlocks(pool, BLOCKS, this.quarantine.members('block'));
    let collected = 0;
    const collect = async (part: readonly string[]) => (collected += await collectBlocks(pool, part));
    await bisectBatch(blocks, collect, (block, error) => this.quarantine.add('block', block, error), isItemFault);
    return collected === BLOCKS;
  }

  async #indexBatch(lane: Lane): Promise<boolean> {
    const { heads, from } = await this.#nextBatch(lane);
    if (heads.length === 0) return false;
    await bisectBatch(
      heads,
      (part) => this.#indexHeads(lane, { heads: part, from }),
      ({ seq }, error) => this.quarantine.add('search', seq, error),
      isItemFault,
    );
    return true;
  }

  async #nextBatch(lane: Lane): Promise<Batch> {
    const open = this.#open.get(lane.number);
    if (open && this.#continued.has(lane.number)) {
      this.#continued.delete(lane.number);
      const without = [...this.quarantine.members('search'), ...open.heads.map(({ seq }) => seq)];
      const heads = await this.#nextHeads(lane, without);
      if (heads.length > 0) return { heads, from: null };
    }
    if (open) {
      this.#open.delete(lane.number);
      this.#continued.add(lane.number);
      return open;
    }
    return { heads: await this.#nextHeads(lane, this.quarantine.members('search')), from: null };
  }

  #nextHeads(lane: Lane, without: readonly string[]): Promise<UnsearchedHead[]> {
    const { pool } = this.database;
    return this.#rounds.next(lane, {
      select: (range) => selectUnsearched(pool, BATCH, STATEMENT_BYTES, { ...lane, ...range }, without),
      selectNewest: () => selectNewestUnsearched(pool),
    });
  }

  /** The rest of a second batch that is too large is selected again later. What is indexed is not indexed again. */
  async #indexHeads(lane: Lane, { heads, from }: Batch): Promise<void> {
    const { pool } = this.database;
    const rest = await indexMessages(pool, heads, from, STATEMENT_BYTES);
    const open = rest === null ? heads.length : heads.findIndex(({ seq }) => seq === rest.seq);
    await finishIndexing(pool, heads.slice(0, open));
    if (rest && !this.#open.has(lane.number)) this.#open.set(lane.number, { heads: heads.slice(open), from: rest });
  }

  /** False if it was not indexed, for example because the object store is unavailable; it is repeated later. */
  async #indexLate(rollout: LateRollout): Promise<boolean> {
    const { pool } = this.database;
    const pointerNow = async () => (await selectPointers(pool, [rollout.seq])).get(rollout.seq);
    const pointer = await pointerNow();
    if (!pointer) return false;
    try {
      await this.#write(rollout, pointer);
      return true;
    } catch (error) {
      const isLost = error instanceof TranscriptError || (error instanceof BlobError && error.kind === 'not_found');
      if (!isLost && !isBlobFailure(error) && !isItemFault(error)) throw error;
      if (!isLost) {
        this.quarantine.add('search', rollout.seq, error, pointer.blob_key);
        return false;
      }
      this.logger.warn({ err: error, key: pointer.blob_key }, 'a transcript was not made searchable');
      // A rollout that was sealed again meanwhile is found again. A lost transcript has no words.
      if ((await pointerNow())?.blob_key === pointer.blob_key) await markSearched(pool, rollout.seq);
      return false;
    }
  }

  /** Writes all words or none, because the presence of words marks the rollout as indexed. */
  async #write(rollout: LateRollout, pointer: TranscriptPointer): Promise<void> {
    const blocks = new Set<string>();
    await inTransaction(this.database.pool, async (client) => {
      for await (const messages of this.#statements(pointer)) {
        for (const block of await insertWords(client, rollout, messages)) blocks.add(block);
      }
      if (!(await holdRollout(client, rollout.seq))) await client.query('ROLLBACK');
    });
    await markFullBlocks(this.database.pool, [...blocks]);
  }

  async *#statements(pointer: TranscriptPointer): AsyncGenerator<SearchedMessage[]> {
    let open: SearchedMessage[] = [];
    let characters = 0;
    for await (const line of this.objects.lines(pointer)) {
      const { event_id, index, type, name, summary, content } = messageOf(line);
      const text = [name, summary, content].filter((part) => part !== null).join(' ');
      open.push({ event_id, index, type, text });
      characters += text.length;
      if (open.length < MESSAGES && characters < STATEMENT_BYTES) continue;
      yield open;
      open = [];
      characters = 0;
    }
    if (open.length > 0) yield open;
  }
}
