import { Inject, Injectable } from '@nestjs/common';
import { createHash } from 'node:crypto';
import { type BlobStore, BlobError } from '@palestra/blobs';
import { PalestraError } from '@palestra/protocol';
import { cutText, type ReadEvent, type ReadMessage } from '@palestra/rollouts';
import { BLOB_STORE } from '../../platform/tokens.ts';
import type { StoredMessage } from './ingest.sql.ts';
import { objectKey } from '../storage/object-keys.ts';

/** Larger contents are stored as objects and read with Range; bytes. */
export const MAX_INLINE_BYTES = 8 * 1024 * 1024;
/** The row keeps the start of a large content for lists, the normaliser and search; characters. */
const KEPT_CHARACTERS = 64 * 1024;
/** Smaller images stay in the message. */
const MIN_IMAGE_CHARACTERS = 4_096;
const DATA_URL = /data:image\/(png|jpeg|jpg|gif|webp);base64,([A-Za-z0-9+/=]+)/g;
/** Concurrent uploads of one batch. */
const CONCURRENCY = 4;
const DEADLINE_MS = 60_000;
/** Scheme of the reference to an image in a message. The page loads it from `/v1/rollouts/{id}/objects/{name}`. */
const OBJECT_SCHEME = 'palestra-object:';

interface Upload {
  key: string;
  body: Buffer;
  contentType: string;
}

/**
 * Stores images and very large bodies of messages as objects. The object is durable before the row that points to it. Objects are named by
 * the SHA-256 of their content, below the rollout, so that a repeated upload writes the same object, and erasing a rollout erases a prefix.
 */
@Injectable()
export class MessageObjects {
  constructor(@Inject(BLOB_STORE) private readonly blobs: BlobStore) {}

  async detach(orgId: string, events: readonly ReadEvent[]): Promise<{ events: ReadEvent[] }> {
    const uploads: Upload[] = [];
    const detached = events.map((event) => (event.kind === 'message' ? detachMessage(orgId, event, uploads) : event));
    for (let at = 0; at < uploads.length; at += CONCURRENCY) {
      await Promise.all(uploads.slice(at, at + CONCURRENCY).map((upload) => this.#put(upload)));
    }
    return { events: detached };
  }

  async #put({ key, body, contentType }: Upload): Promise<void> {
    try {
      await this.blobs.put(key, body, { contentType }, AbortSignal.timeout(DEADLINE_MS));
    } catch (error) {
      // The client keeps its batch and sends it again, because nothing was acknowledged.
      if (error instanceof BlobError) throw new PalestraError('ingest_overloaded', { retryAfterSeconds: 2, cause: error });
      throw error;
    }
  }
}

function detachMessage(orgId: string, event: ReadMessage, uploads: Upload[]): StoredMessage {
  let { content } = event;
  if (content === null) return event;
  if (content.length > MIN_IMAGE_CHARACTERS && content.includes('data:image/')) {
    content = content.replaceAll(DATA_URL, (url, kind: string, base64: string) => {
      if (base64.length < MIN_IMAGE_CHARACTERS) return url;
      const type = kind === 'jpg' ? 'jpeg' : kind;
      return `${OBJECT_SCHEME}${add(uploads, orgId, event, Buffer.from(base64, 'base64'), `image/${type}`, type)}`;
    });
  }
  if (content.length * 3 <= MAX_INLINE_BYTES || Buffer.byteLength(content) <= MAX_INLINE_BYTES) return { ...event, content };
  const body = Buffer.from(content);
  const name = add(uploads, orgId, event, body, 'text/plain; charset=utf-8', 'txt');
  return { ...event, content: cutText(content, KEPT_CHARACTERS), bodyBytes: body.length, blobKey: objectKey(orgId, event.rolloutId, name) };
}

function add(uploads: Upload[], orgId: string, event: ReadMessage, body: Buffer, contentType: string, extension: string): string {
  const name = `${createHash('sha256').update(body).digest('hex')}.${extension}`;
  uploads.push({ key: objectKey(orgId, event.rolloutId, name), body, contentType });
  return name;
}
