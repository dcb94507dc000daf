import { Inject, Injectable } from '@nestjs/common';
import { buffer } from 'node:stream/consumers';
import type { BlobStore } from '@palestra/blobs';
import { chunksOf, recodeChunk, TRANSCRIPT_TYPE, type TranscriptChunk } from '@palestra/rollouts/transcript';
import type { Logger } from 'pino';
import { Database } from '../../platform/database/database.ts';
import { BLOB_STORE, LOGGER } from '../../platform/tokens.ts';
import { inTransaction } from '../../platform/database/transaction.ts';
import { isDatabaseUnavailable, isRolledBack } from '../../platform/database/database-errors.ts';
import { isObjectStoreUnavailable, isStatementFault } from '../bisect-batch.ts';
import { ObjectGarbage } from './garbage.service.ts';
import { declareObjects } from './garbage.sql.ts';
import { limitStalls } from './limit-stalls.ts';
import { packPrefix } from './object-keys.ts';
import {
  clearMergeDue,
  commitMerge,
  type CopiedTranscript,
  deleteEmptyPacks,
  hasPack,
  type MergeRule,
  type Pack,
  type PackedTranscript,
  selectDirtyPacks,
  selectMergeable,
  selectOldPacks,
  selectSmallPacks,
  selectTranscriptsOf,
} from './pack.sql.ts';
import { TranscriptWriter } from './transcript-writer.service.ts';

const MINUTE_MS = 60_000;
const RULE: Omit<MergeRule, 'without'> = { targetBytes: 32 * 1024 * 1024, factor: 8, quietMs: 60 * MINUTE_MS };
/** Deletions of this time share one copy of a pack. */
const DIRTY_MS = 10 * MINUTE_MS;
/** Packs of one merge. */
const PACKS = 500;
/** Compressed bytes in memory. */
const WINDOW_BYTES = 4 * 1024 * 1024;
/** Unused bytes that are read to save a request. */
const GAP_BYTES = 64 * 1024;
const READ_MS = MINUTE_MS;
/** In which the store gives and takes a piece. All pieces of a pack with a very long rollout may take longer. */
const STALL_MS = 2 * MINUTE_MS;
/** Packs that could not be copied, which wait for the next start of the process. More are a fault of the store. */
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
 * transcripts, which the copy leaves out (ADR 27). A pass can be repeated and ended at any point, and looks only at runs whose packs changed.
 */
@Injectable()
export class CompactService {
  readonly #damaged = new Set<string>();
  /** Packs that the current pass leaves out, because a statement with them failed: the next pass may copy them. */
  readonly #left = new Set<string>();

  constructor(
    private readonly database: Database,
    private readonly writer: TranscriptWriter,
    private readonly garbage: ObjectGarbage,
    @Inject(BLOB_STORE) private readonly blobs: BlobStore,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  async compact(signal: AbortSignal = new AbortController().signal, dirtyMs = DIRTY_MS, sizes = RULE): Promise<CompactPass> {
    const pass: CompactPass = { merged: 0, failed: 0, away: false };
    this.#left.clear();
    try {
      const { pool } = this.database;
      const rule = () => ({ ...sizes, without: [...this.#damaged, ...this.#left] });
      await this.#rewriteAll(() => selectDirtyPacks(pool, dirtyMs, PACKS, rule().without), pass, signal);
      const started = performance.now();
      for (const mergeable of await selectMergeable(pool, rule())) {
        for (let after = '0'; !signal.aborted;) {
          const packs = await selectSmallPacks(pool, rule(), mergeable, after, PACKS);
          const taken = firstOf(packs, sizes.targetBytes);
          const isWorthIt =
            taken.length > 1 && (mergeable.size_class === null || taken.length >= sizes.factor || taken.length < packs.length);
          if (!isWorthIt) break;
          after = taken.at(-1)!.id;
          await this.#mergeOrLeave(taken, pass, signal);
        }
      }
      if (!signal.aborted) await clearMergeDue(pool, rule(), performance.now() - started);
      await this.#rewriteAll(() => selectOldPacks(pool, PACKS, rule().without), pass, signal);
    } catch (error) {
      if (signal.aborted) return pass;
      if (!isObjectStoreUnavailable(error)) throw error;
      pass.away = true;
      this.logger.warn({ err: error }, 'the object store is unavailable: packs were not merged');
    }
    return pass;
  }

  async #rewriteAll(select: () => Promise<Pack[]>, pass: CompactPass, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const packs = await select();
      if (packs.length === 0) return;
      for (const pack of packs) if (!signal.aborted) await this.#mergeOrLeave([pack], pass, signal);
    }
  }

  /** A pack that is damaged, or takes PostgreSQL too long, does not stop the merge of the others. */
  async #mergeOrLeave(packs: readonly Pack[], pass: CompactPass, signal: AbortSignal): Promise<void> {
    try {
      await this.#merge(packs, signal);
      pass.merged += packs.length;
    } catch (error) {
      const isStatement = isStatementFault(error);
      if (signal.aborted || isObjectStoreUnavailable(error) || isRolledBack(error)) throw error;
      if (isDatabaseUnavailable(error) && !isStatement) throw error;
      if (packs.length > 1) {
        const half = packs.length >> 1;
        for (const part of [packs.slice(0, half), packs.slice(half)]) await this.#mergeOrLeave(part, pass, signal);
        return;
      }
      if (isStatement) {
        pass.failed += 1;
        this.#left.add(packs[0]!.id);
        this.logger.warn({ err: error, key: packs[0]!.blob_key }, 'a pack of transcripts was not merged; the next pass repeats it');
        return;
      }
      // Another process merged or erased it, and deleted its object.
      if (!(await hasPack(this.database.pool, packs[0]!.id))) return;
      pass.failed += 1;
      this.#damaged.add(packs[0]!.id);
      this.logger.error({ err: error, key: packs[0]!.blob_key }, 'a pack of transcripts is lost or damaged; it stays as it is');
      if (this.#damaged.size > MAX_DAMAGED) throw new Error(`more than ${MAX_DAMAGED} packs of transcripts are lost or damaged`);
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
    const copied: CopiedTranscript[] = [];
    const body = this.#copy(packs, transcripts, copied, signal);
    // After an error the object may have pointers, if only the answer of COMMIT was lost. Otherwise the sweep finds its key.
    const { size } = await limitStalls(body, STALL_MS, signal, (watched, stop) =>
      this.blobs.put(object.blob_key, watched, { contentType: TRANSCRIPT_TYPE }, stop),
    );
    const bytes = copied.reduce((sum, transcript) => sum + transcript.bytes, 0);
    if (size !== bytes) throw new Error(`the object store stored ${size} of the ${bytes} bytes of ${object.blob_key}`);
    const doomed = await commitMerge(pool, { blob_key: object.blob_key, org_id, run_seq, bytes }, copied, packs);
    if (doomed === null) await this.garbage.discard([object]);
    else await this.garbage.deleteDoomed(doomed);
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
        const { body } = await this.blobs.get(pack.blob_key, { start, end }, AbortSignal.any([signal, AbortSignal.timeout(READ_MS)]));
        const bytes = await buffer(body);
        if (bytes.length !== end - start + 1) throw new Error(`${pack.blob_key} has ${bytes.length} of the bytes ${start} to ${end}`);
        for (const { transcript, chunk } of parts) {
          const part = bytes.subarray(chunk.at - start, chunk.at - start + chunk.bytes);
          const copy = isOld ? await recodeChunk(part, chunk, transcript.id) : part;
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
