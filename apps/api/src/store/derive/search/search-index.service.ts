import { Inject, Injectable } from '@nestjs/common';
import { BlobError } from '@palestra/blobs';
import { TranscriptError } from '@palestra/rollouts/transcript';
import type pg from 'pg';
import type { Logger } from 'pino';
import { Database } from '../../../platform/database/database.ts';
import { LOGGER } from '../../../platform/tokens.ts';
import { isBlobFailure } from '../../bisect-batch.ts';
import { inTransaction } from '../../../platform/database/transaction.ts';
import { messageOf, TranscriptObjects } from '../../storage/transcript-objects.service.ts';
import { selectPointers, type TranscriptPointer } from '../../storage/transcript.sql.ts';
import {
  holdRollout,
  indexMessages,
  insertWords,
  type LateRollout,
  markSearched,
  type SearchedMessage,
  selectLate,
} from './search-index.sql.ts';

/** Rollouts of one round. */
const BATCH = 200;
const LATE_BATCH = 20;
/** Messages of one statement. */
const MESSAGES = 200;

/** Makes messages searchable: from rows, and of rollouts whose start event came after they had been sealed from their transcripts. */
@Injectable()
export class SearchIndex {
  constructor(
    private readonly database: Database,
    private readonly objects: TranscriptObjects,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  /** One batch; answers whether there is more. */
  async round(): Promise<boolean> {
    if ((await indexMessages(this.database.pool, BATCH)) === BATCH) return true;
    let written = false;
    for (const rollout of await selectLate(this.database.pool, LATE_BATCH)) if (await this.#indexLate(rollout)) written = true;
    // Rows that came after it was sealed, and its mark, are of the next batch.
    return written;
  }

  /** False: not now; an object store that is away leaves it to a later round. */
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
      // One that was sealed anew meanwhile is found again; what is lost has no words.
      if (isLost && (await pointerNow())?.blob_key === pointer.blob_key) await markSearched(pool, rollout.seq);
      return false;
    }
  }

  /** All of its words or none: that there are some tells that it is done. */
  async #write(rollout: LateRollout, pointer: TranscriptPointer): Promise<void> {
    await inTransaction(this.database.pool, async (client) => {
      await this.#insert(client, rollout, pointer);
      if (!(await holdRollout(client, rollout.seq))) await client.query('ROLLBACK');
    });
  }

  async #insert(client: pg.PoolClient, rollout: LateRollout, pointer: TranscriptPointer): Promise<void> {
    let open: SearchedMessage[] = [];
    for await (const line of this.objects.lines(pointer)) {
      const { event_id, index, type, name, summary, content } = messageOf(line);
      open.push({ event_id, index, type, text: [name, summary, content].filter((part) => part !== null).join(' ') });
      if (open.length < MESSAGES) continue;
      await insertWords(client, rollout, open);
      open = [];
    }
    if (open.length > 0) await insertWords(client, rollout, open);
  }
}
