import { Inject, Injectable } from '@nestjs/common';
import { buffer } from 'node:stream/consumers';
import { BlobError, type BlobStore } from '@palestra/blobs';
import type { ExportedMessage } from '@palestra/exports';
import type { MessageType } from '@palestra/protocol';
import type pg from 'pg';
import { BLOB_STORE } from '../platform/tokens.ts';
import { mapLimit } from '../store/storage/map-limit.ts';
import { objectKey } from '../store/storage/object-keys.ts';
import { TranscriptReader } from '../store/storage/transcript-reader.service.ts';
import { selectPointers } from '../store/storage/transcript.sql.ts';
import { dateOf } from './narrow-rollout.ts';
import { type MessageRow, selectMessagesOf } from './rollout-export.rows.sql.ts';

export interface MessageLocation {
  seq: string;
  id: string;
  day: string;
  sealed: boolean;
}

/** Transcripts that are read from the object store at the same time. */
const CONCURRENCY = 8;
const DEADLINE_MS = 60_000;
/** Reference to an image in a stored message (MessageObjects). */
const OBJECT = /palestra-object:([0-9a-f]{64}\.([a-z0-9]{1,8}))/g;

/** Whole transcripts of many rollouts, from rows and from sealed objects, with large bodies and images restored. */
@Injectable()
export class ExportMessages {
  constructor(
    private readonly transcripts: TranscriptReader,
    @Inject(BLOB_STORE) private readonly blobs: BlobStore,
  ) {}

  /** Messages by `seq`, in the order of their indexes. The caller bounds their size. */
  async read(pool: pg.Pool, orgId: string, locations: readonly MessageLocation[]): Promise<Map<string, ExportedMessage[]>> {
    const found = new Map<string, MessageRow[]>(locations.map(({ seq }) => [seq, []]));
    for (const row of await selectMessagesOf(
      pool,
      locations.filter(({ sealed }) => !sealed),
    )) {
      found.get(row.rollout_seq)!.push(row);
    }
    // After the rows: a rollout that was sealed in between has a pointer.
    const sealed = await selectPointers(
      pool,
      locations.map(({ seq }) => seq),
    );
    const inObjects = locations.filter(({ seq }) => sealed.has(seq));
    await mapLimit(inObjects, CONCURRENCY, async (location) => {
      found.set(location.seq, await this.#sealed(location));
    });
    const transcripts = new Map<string, ExportedMessage[]>();
    for (const location of locations) {
      const rows = found.get(location.seq)!;
      transcripts.set(location.seq, rows.some(hasObjects) ? await this.#restore(orgId, location.id, rows) : rows.map(messageOf));
    }
    return transcripts;
  }

  async #sealed(location: MessageLocation): Promise<MessageRow[]> {
    const rows = await this.transcripts.messages({ ...location, sealed: true });
    return rows.map((row) => ({ ...row, rollout_seq: location.seq, metadata: textOf(row.metadata) }));
  }

  async #restore(orgId: string, rolloutId: string, rows: readonly MessageRow[]): Promise<ExportedMessage[]> {
    const restored: ExportedMessage[] = [];
    for (const row of rows) {
      const body = row.blob_key === null ? row.content : ((await this.#object(row.blob_key))?.toString('utf8') ?? row.content);
      restored.push({ ...messageOf(row), content: body === null ? null : await this.#withImages(orgId, rolloutId, body) });
    }
    return restored;
  }

  /** Text that looks like a reference but has no object stays. */
  async #withImages(orgId: string, rolloutId: string, text: string): Promise<string> {
    const images = new Map<string, string>();
    for (const [reference, name, extension] of text.matchAll(OBJECT)) {
      if (images.has(reference)) continue;
      const body = await this.#object(objectKey(orgId, rolloutId, name!));
      images.set(reference, body ? `data:image/${extension};base64,${body.toString('base64')}` : reference);
    }
    return images.size === 0 ? text : text.replaceAll(OBJECT, (reference) => images.get(reference)!);
  }

  async #object(key: string): Promise<Buffer | null> {
    try {
      const { body } = await this.blobs.get(key, undefined, AbortSignal.timeout(DEADLINE_MS));
      return await buffer(body);
    } catch (error) {
      if (error instanceof BlobError && (error.kind === 'not_found' || error.kind === 'invalid_key')) return null;
      throw error;
    }
  }
}

const hasObjects = ({ blob_key, content }: MessageRow) => blob_key !== null || (content !== null && content.includes('palestra-object:'));

function textOf(metadata: object | null): string | null {
  return metadata === null || Object.keys(metadata).length === 0 ? null : JSON.stringify(metadata);
}

function messageOf(row: MessageRow): ExportedMessage {
  const { index, content, summary, content_reference, name, call_id, reward, is_finished, metadata } = row;
  return {
    index,
    type: row.type as MessageType,
    content,
    summary,
    content_reference,
    name,
    call_id,
    reward,
    is_finished,
    metadata,
    sent_at: dateOf(Number(row.sent_at)),
  };
}
