import { Inject, Injectable } from '@nestjs/common';
import type { BlobStore } from '@palestra/blobs';
import { PalestraError } from '@palestra/protocol';
import { BLOB_STORE } from '../platform/tokens.ts';
import { objectKey } from '../store/storage/object-keys.ts';
import { blobBody, type RawBody, textBody } from './raw-body.ts';
import type { RolloutSnapshot } from './rollout-snapshot.ts';
import { TranscriptReader } from '../store/storage/transcript-reader.service.ts';

const OBJECT = /^[0-9a-f]{64}\.(png|jpeg|gif|webp|svg|txt)$/;
/** Image types that a page may show; browsers save others. */
const IMAGE_TYPES: Record<string, string> = { png: 'image/png', jpeg: 'image/jpeg', gif: 'image/gif', webp: 'image/webp' };

/** Bodies of messages, and objects that were extracted from them. */
@Injectable()
export class RolloutBodyService {
  constructor(
    private readonly transcripts: TranscriptReader,
    @Inject(BLOB_STORE) private readonly blobs: BlobStore,
  ) {}

  /** The body of the first message with the index, or of the one with the event id. Throws `message_not_found`. */
  async body({ head }: RolloutSnapshot, index: string, eventId: string | undefined): Promise<RawBody> {
    const missing = () => new PalestraError('message_not_found');
    if (!/^\d{1,9}$/.test(index)) throw missing();
    const rows = await this.transcripts.messages(head, { from: Number(index), limit: eventId === undefined ? 1 : 100 });
    const row = rows.find((one) => one.index === Number(index) && (eventId === undefined || one.event_id === eventId));
    if (!row) throw missing();
    return row.blob_key === null ? textBody(row.content ?? '') : blobBody(this.blobs, row.blob_key, missing);
  }

  /** Throws `file_not_found`. */
  async object({ head, orgId }: RolloutSnapshot, name: string): Promise<RawBody> {
    const missing = () => new PalestraError('file_not_found');
    const extension = OBJECT.exec(name)?.[1];
    if (extension === undefined) throw missing();
    const body = await blobBody(this.blobs, objectKey(orgId, head.id, name), missing);
    const imageType = IMAGE_TYPES[extension];
    return imageType === undefined
      ? { ...body, contentType: 'application/octet-stream', fileName: name }
      : { ...body, contentType: imageType };
  }
}
