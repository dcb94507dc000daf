import { Inject, Injectable } from '@nestjs/common';
import { CHUNK_CHARACTERS, CHUNK_MESSAGES } from '@palestra/rollouts/transcript';
import type { Logger } from 'pino';
import { type Config, CONFIG } from '../../platform/config.ts';
import { isDatabaseUnavailable } from '../../platform/database/database-errors.ts';
import { Database } from '../../platform/database/database.ts';
import { Metrics } from '../../platform/telemetry/metrics.ts';
import { LOGGER } from '../../platform/tokens.ts';
import { isObjectStoreUnavailable } from '../bisect-batch.ts';
import { ObjectGarbage } from './garbage.service.ts';
import { declareObjects, type GarbageKey } from './garbage.sql.ts';
import { mapLimit } from './map-limit.ts';
import { commitSeals, markSealed, type Sealable, type SealedObject, selectSealable, selectTexts } from './seal.sql.ts';
import { TranscriptWriter } from './transcript-writer.service.ts';

const CANDIDATES = 400;
/** Small rollouts that one statement reads, and one statement points to. */
const GROUP_ROLLOUTS = 100;
const GROUP_BYTES = 8 * 1024 * 1024;
/** Groups in progress: one is read while the other is written. */
const CONCURRENT_GROUPS = 2;
/** Concurrent uploads of a group. */
const PUT_CONCURRENCY = 12;
/** Approximate size of a line without its bodies. */
const LINE_BYTES = 500;
const MIN_BACKOFF_MS = 5_000;
const MAX_BACKOFF_MS = 5 * 60_000;

/** Result of a pass. `failed`: rollouts that stay unsealed because of an error. `away`: the object store was unavailable. */
export interface SealPass {
  sealed: number;
  messages: number;
  bytes: number;
  /** They grew meanwhile, or another process sealed them first. */
  skipped: number;
  failed: number;
  away: boolean;
}

/**
 * Moves the messages of finished and silent rollouts into one compressed object each. It writes the object first and checks its size. Then
 * one transaction stores the pointer and deletes the rows. Before that transaction the rows are valid, after it the object is: a crash
 * leaves at most an object without a pointer, whose key was stored before (garbage.sql.ts).
 */
@Injectable()
export class SealService {
  #failures = 0;
  #notBefore = 0;
  readonly #sealed;
  readonly #bytes;

  constructor(
    private readonly database: Database,
    private readonly writer: TranscriptWriter,
    private readonly garbage: ObjectGarbage,
    metrics: Metrics,
    @Inject(CONFIG) private readonly config: Config,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    this.#sealed = metrics.counter('palestra_seals_total', 'Rollouts by the outcome of sealing', ['outcome']);
    this.#bytes = metrics.counter('palestra_sealed_bytes_total', 'Compressed bytes of sealed transcripts', []);
  }

  /** Seals all rollouts that are ready. While the object store is unavailable a pass makes one attempt, and passes become rarer. */
  async seal(signal: AbortSignal = new AbortController().signal): Promise<SealPass> {
    const pass: SealPass = { sealed: 0, messages: 0, bytes: 0, skipped: 0, failed: 0, away: false };
    if (Date.now() < this.#notBefore) return { ...pass, away: true };
    try {
      for (let after = '0'; !signal.aborted;) {
        const candidates = await selectSealable(this.database.pool, after, this.config.sealing, this.#failures > 0 ? 1 : CANDIDATES);
        if (candidates.length === 0) break;
        after = candidates.at(-1)!.seq;
        await mapLimit(groupsOf(candidates), CONCURRENT_GROUPS, (group) => this.#sealOrLeave(group, pass, signal));
        this.#failures = 0;
      }
    } catch (error) {
      if (signal.aborted) return pass;
      if (!isObjectStoreUnavailable(error)) throw error;
      pass.away = true;
      this.#failures += 1;
      const pauseMs = Math.min(MIN_BACKOFF_MS * 2 ** (this.#failures - 1), MAX_BACKOFF_MS);
      this.#notBefore = Date.now() + pauseMs;
      this.logger.warn({ err: error, pauseMs }, 'the object store is unavailable: rollouts stay unsealed, nothing is lost');
    }
    return pass;
  }

  /** A failure of one group, such as a statement timeout, does not stop the others. */
  async #sealOrLeave(group: Sealable[], pass: SealPass, signal: AbortSignal): Promise<void> {
    try {
      await this.#sealGroup(group, pass, signal);
    } catch (error) {
      if (isObjectStoreUnavailable(error) || isFatal(error)) throw error;
      this.#recordFailure(group, error, pass);
    }
  }

  async #sealGroup(group: Sealable[], pass: SealPass, signal: AbortSignal): Promise<void> {
    const keys = new Map(group.map((rollout) => [rollout.seq, this.writer.keyFor(rollout)]));
    const declared = group.map(({ seq }) => ({ blob_key: keys.get(seq)!, rollout_seq: seq }));
    await declareObjects(this.database.pool, declared);
    const texts = isSmall(group[0]!) ? await this.#texts(group) : null;
    const objects: SealedObject[] = [];
    const empty: Sealable[] = [];
    let outage: unknown = null;
    await mapLimit(group, PUT_CONCURRENCY, async (rollout) => {
      if (outage !== null || signal.aborted) return;
      const key = keys.get(rollout.seq)!;
      try {
        const text = texts?.get(rollout.seq);
        if (texts && !text) empty.push(rollout);
        else
          objects.push(text ? await this.writer.writeText(rollout, key, text, signal) : await this.writer.writeLines(rollout, key, signal));
      } catch (error) {
        if (isObjectStoreUnavailable(error)) outage = error;
        else if (isFatal(error)) throw error;
        else this.#recordFailure([rollout], error, pass);
      }
    });
    await this.#commit(objects, empty, pass, declared);
    if (outage !== null) throw outage;
  }

  /** Null when they cannot be read together, for example because the text is too large. Then each is read alone. */
  async #texts(group: readonly Sealable[]) {
    try {
      return await selectTexts(this.database.pool, group);
    } catch (error) {
      if (isFatal(error)) throw error;
      this.logger.info({ err: error }, 'rollouts could not be read together');
      return null;
    }
  }

  async #commit(objects: SealedObject[], empty: readonly Sealable[], pass: SealPass, declared: readonly GarbageKey[]): Promise<void> {
    if (empty.length > 0) await markSealed(this.database.pool, empty);
    // A transcript without messages is skipped: the rows were moved since the rollout was selected.
    const full = objects.filter(({ messages }) => messages > 0);
    const { sealed, replaced } = full.length > 0 ? await commitSeals(this.database.pool, full) : { sealed: [], replaced: [] };
    const done = new Set(sealed);
    const pointedAt = new Set(full.filter(({ seq }) => done.has(seq)).map(({ blob_key }) => blob_key));
    for (const { seq, messages, bytes } of full) {
      if (!done.has(seq)) continue;
      pass.messages += messages;
      pass.bytes += bytes;
      this.#bytes.inc(bytes);
    }
    pass.sealed += sealed.length;
    pass.skipped += full.length - sealed.length;
    this.#sealed.inc({ outcome: 'sealed' }, sealed.length);
    this.#sealed.inc({ outcome: 'skipped' }, full.length - sealed.length);
    await this.garbage.discard(declared.filter(({ blob_key }) => !pointedAt.has(blob_key)));
    await this.garbage.deleteDoomed(replaced);
  }

  #recordFailure(rollouts: readonly Sealable[], error: unknown, pass: SealPass): void {
    pass.failed += rollouts.length;
    this.#sealed.inc({ outcome: 'failed' }, rollouts.length);
    this.logger.warn({ err: error, rollouts: rollouts.map(({ id }) => id) }, 'rollouts were not sealed; their rows stay');
  }
}

/** Whether it fits into one chunk, so that it can be read together with others. */
const isSmall = ({ messages, bytes, resealed }: Sealable): boolean =>
  !resealed && messages <= CHUNK_MESSAGES && bytes + messages * LINE_BYTES <= CHUNK_CHARACTERS;

function groupsOf(candidates: readonly Sealable[]): Sealable[][] {
  const groups: Sealable[][] = candidates.filter((rollout) => !isSmall(rollout)).map((rollout) => [rollout]);
  let bytes = Infinity;
  for (const rollout of candidates.filter(isSmall)) {
    const more = rollout.bytes + rollout.messages * LINE_BYTES;
    if (bytes + more > GROUP_BYTES || groups.at(-1)!.length === GROUP_ROLLOUTS) {
      groups.push([]);
      bytes = 0;
    }
    groups.at(-1)!.push(rollout);
    bytes += more;
  }
  return groups;
}

/** PostgreSQL is unavailable, so that no rollout can be sealed. A statement timeout (57014) does not affect other statements. */
const isFatal = (error: unknown): boolean => isDatabaseUnavailable(error) && (error as { code?: string }).code !== '57014';
