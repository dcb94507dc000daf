import { Inject, Injectable } from '@nestjs/common';
import { buffer } from 'node:stream/consumers';
import { BlobError, type BlobStore } from '@palestra/blobs';
import type { ExportedMessage } from '@palestra/exports';
import { TimeSlice } from '@palestra/kit';
import type { MessageType } from '@palestra/protocol';
import { compareMessages, type TranscriptMessage } from '@palestra/rollouts/transcript';
import type pg from 'pg';
import { BLOB_STORE } from '../platform/tokens.ts';
import { objectKey } from '../store/storage/object-keys.ts';
import { TranscriptReader } from '../store/storage/transcript-reader.service.ts';
import { dateOf } from './narrow-rollout.ts';
import { type MessageRow, selectMessagesOf } from './rollout-export.rows.sql.ts';

export interface MessageLocation {
  seq: string;
  id: string;
  day: string;
  /** Their number when the rollout was derived. */
  messages: number;
}

type FoundMessage = TranscriptMessage | MessageRow;

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

  /**
   * Messages by `seq`, in the order of their indexes. Rollouts that were erased since they were located are absent. The caller bounds the
   * size of the result.
   */
  async read(pool: pg.Pool, orgId: string, locations: readonly MessageLocation[]): Promise<Map<string, ExportedMessage[]>> {
    const rows = new Map<string, MessageRow[]>();
    for (const row of await selectMessagesOf(pool, locations)) {
      const before = rows.get(row.rollout_seq);
      if (before) before.push(row);
      else rows.set(row.rollout_seq, [row]);
    }
    const sealed = await this.transcripts.sealedMessages(locations.map(({ seq }) => seq));
    const transcripts = new Map<string, ExportedMessage[]>();
    const slice = new TimeSlice();
    for (const { seq, id, messages } of locations) {
      const found = merged(sealed.get(seq) ?? [], rows.get(seq) ?? []);
      // Erasing deletes rows and transcript in one transaction.
      if (found.length === 0 && messages > 0) continue;
      transcripts.set(seq, found.some(hasObjects) ? await this.#restore(orgId, id, found) : found.map(messageOf));
      if (slice.isOver) await slice.renew();
    }
    return transcripts;
  }

  async #restore(orgId: string, rolloutId: string, rows: readonly FoundMessage[]): Promise<ExportedMessage[]> {
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

const hasObjects = ({ blob_key, content }: FoundMessage) => blob_key !== null || (content !== null && content.includes('palestra-object:'));

/** Sealed messages and rows. An event that is in both has arrived again. */
function merged(sealed: readonly TranscriptMessage[], rows: readonly MessageRow[]): readonly FoundMessage[] {
  if (sealed.length === 0) return rows;
  if (rows.length === 0) return sealed;
  const ids = new Set(sealed.map(({ event_id }) => event_id));
  return [...sealed, ...rows.filter(({ event_id }) => !ids.has(event_id))].toSorted(compareMessages);
}

function textOf(metadata: object | null): string | null {
  return metadata === null || Object.keys(metadata).length === 0 ? null : JSON.stringify(metadata);
}

function messageOf(row: FoundMessage): ExportedMessage {
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
    metadata: typeof metadata === 'string' ? metadata : textOf(metadata),
    sent_at: dateOf(Number(row.sent_at)),
  };
}
