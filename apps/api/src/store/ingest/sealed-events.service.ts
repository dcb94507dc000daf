import { Inject, Injectable } from '@nestjs/common';
import { BlobError } from '@palestra/blobs';
import { PalestraError } from '@palestra/protocol';
import { TranscriptError, type TranscriptMessage } from '@palestra/rollouts/transcript';
import type pg from 'pg';
import type { Logger } from 'pino';
import { LOGGER } from '../../platform/tokens.ts';
import { isBlobFailure } from '../bisect-batch.ts';
import { mapLimit } from '../storage/map-limit.ts';
import { TranscriptObjects } from '../storage/transcript-objects.service.ts';
import { selectPointers, type TranscriptPointer } from '../storage/transcript.sql.ts';
import type { FindSealed, MessageRow, SealedMessages } from './ingest.sql.ts';

type Queryable = Pick<pg.Pool, 'query'>;

/** Transcripts of one batch that are read at the same time. */
const CONCURRENCY = 4;

/**
 * Finds messages that are sent again after their rollout was sealed, whose ids are in no row. The pointer of a transcript has fingerprints
 * of the ids, so that a new event needs no read of the object store, and a repeated one reads only its chunk.
 */
@Injectable()
export class SealedEvents {
  constructor(
    private readonly objects: TranscriptObjects,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  /** Throws `ingest_overloaded` while a needed object cannot be read: the client keeps its batch and sends it again. */
  readonly find: FindSealed = async (client, heads, messages) => {
    const pointers = await selectPointers(
      client,
      heads.map(({ seq }) => seq),
    );
    const found = new Map<string, SealedMessages>();
    await mapLimit(heads, CONCURRENCY, async ({ seq, rollout_id }) => {
      const pointer = pointers.get(seq);
      if (!pointer) return;
      const rows = new Map(messages.flatMap((row) => (row.rollout_id === rollout_id ? [[row.event_id, row] as const] : [])));
      const sealed: SealedMessages = { sealed_at: pointer.sealed_at, eventIds: new Set(), conflicts: [] };
      const isCurrent = await this.#read(client, seq, pointer, new Set(rows.keys()), (message) => {
        const isNew = !sealed.eventIds.has(message.event_id);
        sealed.eventIds.add(message.event_id);
        if (isNew && differs(message, rows.get(message.event_id)!)) sealed.conflicts.push(message.event_id);
      });
      if (isCurrent) found.set(rollout_id, sealed);
    });
    return found;
  };

  /** The given event ids that are sealed, by `seq` of the rollouts. */
  async ids(client: Queryable, seqs: readonly string[], eventIds: ReadonlySet<string>): Promise<Map<string, Set<string>>> {
    const found = new Map(seqs.map((seq) => [seq, new Set<string>()]));
    let remaining = [...seqs];
    while (remaining.length > 0) {
      const pointers = await selectPointers(client, remaining);
      const resealed: string[] = [];
      await mapLimit([...pointers], CONCURRENCY, async ([seq, pointer]) => {
        if (!(await this.#read(client, seq, pointer, eventIds, ({ event_id }) => found.get(seq)!.add(event_id)))) resealed.push(seq);
      });
      remaining = resealed;
    }
    return found;
  }

  /** False if the rollout was sealed again since, so that the object no longer exists. */
  async #read(
    client: Queryable,
    seq: string,
    pointer: TranscriptPointer,
    eventIds: ReadonlySet<string>,
    take: (message: TranscriptMessage) => unknown,
  ): Promise<boolean> {
    try {
      for await (const message of this.objects.find(pointer, eventIds)) take(message);
      return true;
    } catch (error) {
      const isLost = error instanceof TranscriptError || (error instanceof BlobError && error.kind === 'not_found');
      if (isLost) {
        const now = (await selectPointers(client, [seq])).get(seq);
        if (now?.sealed_at !== pointer.sealed_at) return false;
        // Its pack was merged.
        if (now.blob_key !== pointer.blob_key) return this.#read(client, seq, now, eventIds, take);
        // An unreadable transcript must not block a client's batch: its messages become rows again.
        this.logger.error({ err: error, key: pointer.blob_key }, 'a transcript is lost or damaged');
        return true;
      }
      if (isBlobFailure(error)) throw new PalestraError('ingest_overloaded', { retryAfterSeconds: 2, cause: error });
      throw error;
    }
  }
}

/** Compares as the statement for rows does (ingest.sql.ts). */
const differs = (sealed: TranscriptMessage, sent: MessageRow): boolean =>
  sealed.index !== sent.index ||
  sealed.type !== sent.type ||
  sealed.content !== sent.content ||
  sealed.reward !== sent.reward ||
  sealed.call_id !== sent.call_id;
