import { Inject, Injectable } from '@nestjs/common';
import type { BlobStore } from '@palestra/blobs';
import { CONTENT_TYPES, type ExportedMessage, lakeFile, lakeKey, type LakeRollout } from '@palestra/exports';
import { type Config, CONFIG } from '../platform/config.ts';
import { Database } from '../platform/database/database.ts';
import { BLOB_STORE } from '../platform/tokens.ts';
import { eachItem } from '../store/each-item.ts';
import { MAX_WHOLE_BYTES, sizeOf } from '../store/storage/whole-rollout.ts';
import {
  deleteOrphanedRuns,
  deletePart,
  hasUnsealed,
  type LakePart,
  type LakeRun,
  type OrphanedPart,
  saveCheck,
  savePart,
  selectLakeRuns,
  selectOrphanedParts,
  selectParts,
  selectPartSeqs,
  selectPartsOfDeleted,
} from './lake.sql.ts';
import { narrowRollout } from './narrow-rollout.ts';
import { ExportMessages } from './rollout-export.messages.ts';
import { type DetailRow, selectDetails } from './rollout-export.rows.sql.ts';

const PAGE = 500;
/** How often all files are compared with the runs. Files of deleted runs are found in each pass; a crash may leave others. */
const COMPARE_MS = 3_600_000;
/** Bytes of messages in memory at a time. */
const MESSAGE_BYTES = 16 * 1024 * 1024;

/** Result of a pass. */
export interface LakePass {
  written: number;
  deleted: number;
}

/**
 * Keeps the lake equal to the sealed rollouts. A file keeps its key and is replaced as a whole, so that a reader sees the old or the new
 * version. The next pass removes erased rollouts. The object is written before the row with its fingerprint: after a crash between them it
 * is written again.
 */
@Injectable()
export class LakeService {
  #comparedAt = -Infinity;

  constructor(
    private readonly database: Database,
    private readonly messages: ExportMessages,
    @Inject(BLOB_STORE) private readonly blobs: BlobStore,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  /** A run that fails, because a transcript of it is lost, keeps no other from being written. Rejects with the first error. */
  async write(signal: AbortSignal): Promise<LakePass> {
    const pass = { written: 0, deleted: await this.#deleteOrphaned(signal) };
    if (this.config.lake === 'off') return pass;
    await eachItem(await selectLakeRuns(this.database.pool), signal, (run) => this.#writeRun(run, pass, signal));
    return pass;
  }

  async #writeRun(run: LakeRun, pass: LakePass, signal: AbortSignal): Promise<void> {
    const { pool } = this.database;
    const started = performance.now();
    // Before the parts: a rollout that is sealed in between appears in one of the two.
    const unsealed = await hasUnsealed(pool, run.seq);
    const parts = await selectParts(pool, run.seq, this.config.lake === 'messages');
    const tookMs = performance.now() - started;
    for (const part of parts) {
      signal.throwIfAborted();
      if (part.wanted === null) {
        await this.#delete(run.seq, { ...part, blob_key: part.blob_key! }, signal);
        pass.deleted += 1;
      } else if (part.wanted !== part.written) {
        await this.#writePart(run, part, part.wanted, signal);
        pass.written += 1;
      }
    }
    await saveCheck(pool, run, unsealed, tookMs);
  }

  async #writePart(run: LakeRun, { step, part, rows }: LakePart, fingerprint: string, signal: AbortSignal): Promise<void> {
    const key = lakeKey({ org: run.org, run, step: step < 0 ? null : step, part });
    const file = lakeFile(this.#rollouts(run, step, part), { messages: this.config.lake === 'messages' });
    const { size } = await this.blobs.put(key, file, { contentType: CONTENT_TYPES.parquet }, signal);
    await savePart(this.database.pool, { runSeq: run.seq, step, part, key, fingerprint, rows, bytes: size });
  }

  async *#rollouts(run: LakeRun, step: number, part: number): AsyncGenerator<LakeRollout> {
    const { pool } = this.database;
    for (let after = '0'; ;) {
      const page = await selectPartSeqs(pool, { runSeq: run.seq, step, part, after, limit: PAGE });
      const keys = new Map(page.map(({ seq, blob_key }) => [seq, blob_key]));
      const details = await selectDetails(pool, [...keys.keys()]);
      for (const batch of this.config.lake === 'messages' ? batchByBytes(details) : [details]) {
        const messages =
          this.config.lake === 'messages'
            ? await this.messages.read(pool, run.org_id, batch.filter(isReadable))
            : new Map<string, ExportedMessage[]>();
        for (const row of batch) {
          const narrow = narrowRollout(row, run.org, undefined);
          yield { ...narrow, run_name: run.name, transcript_key: keys.get(row.seq)!, messages: messages.get(row.seq) };
        }
      }
      if (page.length < PAGE) return;
      after = page.at(-1)!.seq;
    }
  }

  async #deleteOrphaned(signal: AbortSignal): Promise<number> {
    const { pool } = this.database;
    const deleted = await this.#deleteAll(() => selectPartsOfDeleted(pool, PAGE), signal);
    if (performance.now() - this.#comparedAt < COMPARE_MS) return deleted;
    const orphaned = await this.#deleteAll(() => selectOrphanedParts(pool, PAGE), signal);
    await deleteOrphanedRuns(pool);
    this.#comparedAt = performance.now();
    return deleted + orphaned;
  }

  async #deleteAll(select: () => Promise<OrphanedPart[]>, signal: AbortSignal): Promise<number> {
    for (let deleted = 0; ;) {
      const parts = await select();
      for (const { run_seq, ...part } of parts) await this.#delete(run_seq, part, signal);
      deleted += parts.length;
      if (parts.length < PAGE) return deleted;
    }
  }

  async #delete(runSeq: number, part: Pick<LakePart, 'step' | 'part'> & { blob_key: string }, signal: AbortSignal): Promise<void> {
    await this.blobs.delete(part.blob_key, signal);
    await deletePart(this.database.pool, runSeq, part);
  }
}

/** A row whose messages do not fit into memory is written without them. */
const isReadable = ({ bytes, messages }: DetailRow): boolean => sizeOf({ bytes: Number(bytes), messages }) <= MAX_WHOLE_BYTES;

function* batchByBytes(rows: readonly DetailRow[]): Generator<DetailRow[]> {
  let batch: DetailRow[] = [];
  let bytes = 0;
  for (const row of rows) {
    if (batch.length > 0 && bytes + Number(row.bytes) > MESSAGE_BYTES) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(row);
    bytes += Number(row.bytes);
  }
  if (batch.length > 0) yield batch;
}
