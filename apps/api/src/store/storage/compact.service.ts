import { Inject, Injectable } from '@nestjs/common';
import { buffer } from 'node:stream/consumers';
import type { BlobStore } from '@palestra/blobs';
import { chunksOf, recodeChunk, TRANSCRIPT_TYPE, type TranscriptChunk } from '@palestra/rollouts/transcript';
import type { Logger } from 'pino';
import { Database } from '../../platform/database/database.ts';
import { BLOB_STORE, LOGGER } from '../../platform/tokens.ts';
import { inTransaction } from '../../platform/database/transaction.ts';
import { isObjectStoreUnavailable } from '../bisect-batch.ts';
import { ObjectGarbage } from './garbage.service.ts';
import { declareObjects } from './garbage.sql.ts';
import { packPrefix } from './object-keys.ts';
import {
  commitMerge,
  type CopiedTranscript,
  deleteEmptyPacks,
  type MergeRule,
  type Pack,
  type PackedTranscript,
  selectDirtyPacks,
  selectMergeable,
  selectSmallPacks,
  selectTranscriptsOf,
} from './pack.sql.ts';
import { TranscriptWriter } from './transcript-writer.service.ts';

const MINUTE_MS = 60_000;
const RULE: MergeRule = { targetBytes: 32 * 1024 * 1024, factor: 8, quietMs: 60 * MINUTE_MS };
/** Deletions of this time share one copy of a pack. */
const DIRTY_MS = 10 * MINUTE_MS;
/** Packs of one merge. */
const PACKS = 500;
/** Compressed bytes in memory. */
const WINDOW_BYTES = 4 * 1024 * 1024;
/** Unused bytes that are read to save a request. */
const GAP_BYTES = 64 * 1024;
const DEADLINE_MS = 5 * MINUTE_MS;
/** Packs that could not be copied, which wait for the next start of the process. */
const MAX_DAMAGED = 1_000;

/** Result of a pass. `merged`: old packs whose transcripts are in new ones. `failed`: packs that stay as they are because of an error. */
export interface CompactPass {
  merged: number;
  failed: number;
  /** The object store was unavailable. */
  away: boolean;
}

/**
 * Copies the transcripts of packs to new packs: of small packs, so that objects are few, and of packs with bytes of erased or replaced
 * transcripts, which the copy leaves out (ADR 27). A pass can be repeated and ended at any point.
 */
@Injectable()
export class CompactService {
  readonly #damaged = new Set<string>();

  constructor(
    private readonly database: Database,
    private readonly writer: TranscriptWriter,
    private readonly garbage: ObjectGarbage,
    @Inject(BLOB_STORE) private readonly blobs: BlobStore,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  async compact(signal: AbortSignal = new AbortController().signal, dirtyMs = DIRTY_MS, rule: MergeRule = RULE): Promise<CompactPass> {
    const pass: CompactPass = { merged: 0, failed: 0, away: false };
    try {
      await this.#rewriteDirty(dirtyMs, pass, signal);
      for (const mergeable of await selectMergeable(this.database.pool, rule)) {
        for (let after = '0'; !signal.aborted;) {
          const packs = await selectSmallPacks(this.database.pool, rule, mergeable, after, PACKS);
          const taken = firstOf(packs, rule.targetBytes);
          const isWorthIt =
            taken.length > 1 && (mergeable.size_class === null || taken.length >= rule.factor || taken.length < packs.length);
          if (!isWorthIt) break;
          after = taken.at(-1)!.id;
          await this.#mergeOrLeave(
            taken.filter(({ id }) => !this.#damaged.has(id)),
            pass,
            signal,
          );
        }
      }
    } catch (error) {
      if (signal.aborted) return pass;
      if (!isObjectStoreUnavailable(error)) throw error;
      pass.away = true;
      this.logger.warn({ err: error }, 'the object store is unavailable: packs were not merged');
    }
    return pass;
  }

  async #rewriteDirty(dirtyMs: number, pass: CompactPass, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const dirty = await selectDirtyPacks(this.database.pool, dirtyMs, PACKS, [...this.#damaged]);
      if (dirty.length === 0) return;
      for (const pack of dirty) if (!signal.aborted) await this.#mergeOrLeave([pack], pass, signal);
    }
  }

  /** One damaged pack does not stop the merge of the others. */
  async #mergeOrLeave(packs: readonly Pack[], pass: CompactPass, signal: AbortSignal): Promise<void> {
    try {
      await this.#merge(packs, signal);
      pass.merged += packs.length;
    } catch (error) {
      if (signal.aborted || isObjectStoreUnavailable(error)) throw error;
      if (packs.length > 1) {
        for (const pack of packs) await this.#mergeOrLeave([pack], pass, signal);
        return;
      }
      pass.failed += 1;
      if (this.#damaged.size < MAX_DAMAGED) this.#damaged.add(packs[0]!.id);
      this.logger.error({ err: error, key: packs[0]!.blob_key }, 'a pack of transcripts is lost or damaged; it stays as it is');
    }
  }

  async #merge(packs: readonly Pack[], signal: AbortSignal): Promise<void> {
    if (packs.length === 0) return;
    const { pool } = this.database;
    const transcripts = await selectTranscriptsOf(
      pool,
      packs.map(({ id }) => id),
    );
    if (transcripts.length === 0) {
      const keys = await inTransaction(pool, (client) =>
        deleteEmptyPacks(
          client,
          packs.map(({ id }) => id),
        ),
      );
      await this.garbage.deleteDoomed(keys);
      return;
    }
    const { org_id, run_seq } = packs[0]!;
    const object = { blob_key: this.writer.newKey(org_id), rollout_seq: '0' };
    await declareObjects(pool, [object]);
    let doomed: string[] | null = null;
    try {
      const copied: CopiedTranscript[] = [];
      const deadline = AbortSignal.any([signal, AbortSignal.timeout(DEADLINE_MS)]);
      const body = this.#copy(packs, transcripts, copied, deadline);
      const { size } = await this.blobs.put(object.blob_key, body, { contentType: TRANSCRIPT_TYPE }, deadline);
      const bytes = copied.reduce((sum, transcript) => sum + transcript.bytes, 0);
      if (size !== bytes) throw new Error(`the object store stored ${size} of the ${bytes} bytes of ${object.blob_key}`);
      doomed = await commitMerge(pool, { blob_key: object.blob_key, org_id, run_seq, bytes }, copied, packs);
    } finally {
      if (doomed === null) await this.garbage.discard([object]).catch(() => {});
    }
    await this.garbage.deleteDoomed(doomed ?? []);
  }

  /** The bytes of the transcripts, one after another; `copied` is complete at the end. */
  async *#copy(
    packs: readonly Pack[],
    transcripts: readonly PackedTranscript[],
    copied: CopiedTranscript[],
    signal: AbortSignal,
  ): AsyncGenerator<Buffer> {
    let at = 0;
    for (const pack of packs) {
      const isOld = !pack.blob_key.startsWith(packPrefix(pack.org_id));
      const chunks = transcripts.filter((transcript) => transcript.pack === pack.id).flatMap(partsOf);
      for (const { start, end, parts } of windowsOf(chunks)) {
        const { body } = await this.blobs.get(pack.blob_key, { start, end }, signal);
        const bytes = await buffer(body);
        if (bytes.length !== end - start + 1) throw new Error(`${pack.blob_key} has ${bytes.length} of the bytes ${start} to ${end}`);
        for (const { transcript, chunk } of parts) {
          const part = bytes.subarray(chunk.at - start, chunk.at - start + chunk.bytes);
          const copy = isOld ? await recodeChunk(part, transcript.id) : part;
          yield copy;
          let open = copied.at(-1);
          if (open?.seq !== transcript.seq) copied.push((open = { seq: transcript.seq, pack: pack.id, at, bytes: 0, chunks: [] }));
          open.chunks.push({ ...chunk, bytes: copy.length });
          open.bytes += copy.length;
          at += copy.length;
        }
      }
    }
  }
}

/** The first packs that together have the target size. */
function firstOf(packs: readonly Pack[], targetBytes: number): Pack[] {
  let bytes = 0;
  const end = packs.findIndex((pack) => (bytes += pack.bytes) >= targetBytes);
  return end < 0 ? [...packs] : packs.slice(0, end + 1);
}

interface Part {
  transcript: PackedTranscript;
  chunk: TranscriptChunk;
}

const partsOf = (transcript: PackedTranscript): Part[] =>
  chunksOf(transcript.chunks, transcript.at).map((chunk) => ({ transcript, chunk }));

interface Window {
  start: number;
  end: number;
  parts: Part[];
}

/** Chunks of one pack that are read together. */
function windowsOf(parts: readonly Part[]): Window[] {
  const windows: Window[] = [];
  for (const part of parts) {
    const open = windows.at(-1);
    const end = part.chunk.at + part.chunk.bytes - 1;
    if (open && part.chunk.at - open.end <= GAP_BYTES && end - open.start < WINDOW_BYTES) {
      open.parts.push(part);
      open.end = end;
    } else windows.push({ start: part.chunk.at, end, parts: [part] });
  }
  return windows;
}
