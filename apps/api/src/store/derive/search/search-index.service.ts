import { Inject, Injectable } from '@nestjs/common';
import { BlobError } from '@palestra/blobs';
import { TranscriptError } from '@palestra/rollouts/transcript';
import type { Logger } from 'pino';
import { Database } from '../../../platform/database/database.ts';
import { LOGGER } from '../../../platform/tokens.ts';
import { isBlobFailure } from '../../bisect-batch.ts';
import { inTransaction } from '../../../platform/database/transaction.ts';
import { messageOf, TranscriptObjects } from '../../storage/transcript-objects.service.ts';
import { selectPointers, type TranscriptPointer } from '../../storage/transcript.sql.ts';
import type { Lane } from '../derive.sql.ts';
import { collectBlocks, markFullBlocks } from './search-blocks.sql.ts';
import {
  finishIndexing,
  holdRollout,
  indexMessages,
  type IndexPosition,
  insertWords,
  type LateRollout,
  markSearched,
  type SearchedMessage,
  selectLate,
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

/** Makes messages searchable: from rows, and from transcripts for rollouts whose start event arrived after they were sealed. */
@Injectable()
export class SearchIndex {
  #blocks = BLOCKS;
  /** By lane. */
  readonly #batches = new Map<number, { heads: readonly UnsearchedHead[]; from: IndexPosition | null }>();

  constructor(
    private readonly database: Database,
    private readonly objects: TranscriptObjects,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  /** One statement's worth of text of the runs of a lane, and in the first lane what belongs to none; answers whether there is more. */
  async round(lane: Lane = { number: 0, of: 1 }): Promise<boolean> {
    const indexed = await this.#indexBatch(lane);
    if (lane.number > 0) return indexed;
    let written = await this.#collect();
    if (indexed) return true;
    for (const rollout of await selectLate(this.database.pool, LATE_BATCH)) if (await this.#indexLate(rollout)) written = true;
    // Rows that arrived after the seal, and their mark, belong to the next batch.
    return written;
  }

  /** Blocks that PostgreSQL cannot collect at once, for example because they have very many words, are collected in smaller numbers. */
  async #collect(): Promise<boolean> {
    try {
      const isFull = (await collectBlocks(this.database.pool, this.#blocks)) === this.#blocks;
      this.#blocks = BLOCKS;
      return isFull;
    } catch (error) {
      this.#blocks = Math.max(1, this.#blocks >> 1);
      this.logger.warn({ err: error }, 'blocks of the search index were not collected; they will be');
      return false;
    }
  }

  /** A batch that is too large for one statement goes on in the next round. */
  async #indexBatch(lane: Lane): Promise<boolean> {
    const { pool } = this.database;
    const { heads, from } = this.#batches.get(lane.number) ?? {
      heads: await selectUnsearched(pool, BATCH, STATEMENT_BYTES, lane),
      from: null,
    };
    this.#batches.delete(lane.number);
    if (heads.length === 0) return false;
    const rest = await indexMessages(pool, heads, from, STATEMENT_BYTES);
    const open = rest === null ? heads.length : heads.findIndex(({ seq }) => seq === rest.seq);
    await finishIndexing(pool, heads.slice(0, open));
    if (rest) this.#batches.set(lane.number, { heads: heads.slice(open), from: rest });
    return true;
  }

  /** False if it was not indexed, for example because the object store is unavailable; a later round repeats it. */
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
      if (!isLost && !isBlobFailure(error)) throw error;
      this.logger.warn({ err: error, key: pointer.blob_key }, 'a transcript was not made searchable');
      // A rollout that was sealed again meanwhile is found again. A lost transcript has no words.
      if (isLost && (await pointerNow())?.blob_key === pointer.blob_key) await markSearched(pool, rollout.seq);
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
