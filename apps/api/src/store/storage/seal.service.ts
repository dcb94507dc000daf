import { Inject, Injectable } from '@nestjs/common';
import { CHUNK_CHARACTERS, CHUNK_MESSAGES } from '@palestra/rollouts/transcript';
import type { Logger } from 'pino';
import { type Config, CONFIG } from '../../platform/config.ts';
import { isDatabaseUnavailable } from '../../platform/database/database-errors.ts';
import { Database } from '../../platform/database/database.ts';
import { Metrics } from '../../platform/telemetry/metrics.ts';
import { LOGGER } from '../../platform/tokens.ts';
import { isStoreAway } from '../bisect-batch.ts';
import { ObjectGarbage } from './garbage.service.ts';
import { declareObjects, type GarbageKey } from './garbage.sql.ts';
import { mapLimit } from './map-limit.ts';
import { commitSeals, markSealed, type Sealable, type SealedObject, selectSealable, selectTexts } from './seal.sql.ts';
import { TranscriptWriter } from './transcript-writer.service.ts';

const CANDIDATES = 400;
/** Small rollouts that are read, and pointed at, by one statement. */
const GROUP_ROLLOUTS = 100;
const GROUP_BYTES = 8 * 1024 * 1024;
/** Groups in work at the same time: one is read while the other is written. */
const LANES = 2;
/** Of each lane. */
const PUT_CONCURRENCY = 12;
/** What a line has beside its bodies, about. */
const LINE_BYTES = 500;
const MIN_BACKOFF_MS = 5_000;
const MAX_BACKOFF_MS = 5 * 60_000;

/** What a pass did. `failed`: rollouts that stay as they are by a fault of their own; `away`: the object store did not answer. */
export interface SealPass {
  sealed: number;
  messages: number;
  bytes: number;
  /** They grew while they were written, or somebody else was quicker. */
  skipped: number;
  failed: number;
  away: boolean;
}

/**
 * Turns the messages of finished and of silent rollouts into one compressed object each. The object first, checked by its size;
 * then, in one transaction, the pointer, and the rows go. Until that transaction rows are the truth, after it the object is: a crash
 * at any point leaves at most an object that nothing points at, whose key was written down before it was made (garbage.sql.ts).
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
    this.#sealed = metrics.counter('palestra_seals_total', 'Rollouts by what became of sealing them', ['outcome']);
    this.#bytes = metrics.counter('palestra_sealed_bytes_total', 'Compressed bytes of sealed transcripts', []);
  }

  /** Everything that can be sealed by now. While the object store is away a pass is one attempt, and passes become rarer. */
  async seal(signal: AbortSignal = new AbortController().signal): Promise<SealPass> {
    const pass: SealPass = { sealed: 0, messages: 0, bytes: 0, skipped: 0, failed: 0, away: false };
    if (Date.now() < this.#notBefore) return { ...pass, away: true };
    try {
      for (let after = '0'; !signal.aborted;) {
        const candidates = await selectSealable(this.database.pool, after, this.config.sealing, this.#failures > 0 ? 1 : CANDIDATES);
        if (candidates.length === 0) break;
        after = candidates.at(-1)!.seq;
        await mapLimit(groupsOf(candidates), LANES, (group) => this.#sealOrLeave(group, pass, signal));
        this.#failures = 0;
      }
    } catch (error) {
      if (signal.aborted) return pass;
      if (!isStoreAway(error)) throw error;
      pass.away = true;
      this.#failures += 1;
      const pauseMs = Math.min(MIN_BACKOFF_MS * 2 ** (this.#failures - 1), MAX_BACKOFF_MS);
      this.#notBefore = Date.now() + pauseMs;
      this.logger.warn({ err: error, pauseMs }, 'the object store is away: rollouts stay unsealed, nothing is lost');
    }
    return pass;
  }

  /** One group's own failure, a statement that took too long, say, does not keep the others from being sealed. */
  async #sealOrLeave(group: Sealable[], pass: SealPass, signal: AbortSignal): Promise<void> {
    try {
      await this.#sealGroup(group, pass, signal);
    } catch (error) {
      if (isStoreAway(error) || isFatal(error)) throw error;
      this.#failed(group, error, pass);
    }
  }

  async #sealGroup(group: Sealable[], pass: SealPass, signal: AbortSignal): Promise<void> {
    const keys = new Map(group.map((rollout) => [rollout.seq, this.writer.keyFor(rollout)]));
    const declared = group.map(({ seq }) => ({ blob_key: keys.get(seq)!, rollout_seq: seq }));
    await declareObjects(this.database.pool, declared);
    const texts = isSmall(group[0]!) ? await this.#texts(group) : null;
    const objects: SealedObject[] = [];
    const empty: Sealable[] = [];
    let away: unknown = null;
    await mapLimit(group, PUT_CONCURRENCY, async (rollout) => {
      if (away !== null || signal.aborted) return;
      const key = keys.get(rollout.seq)!;
      try {
        const text = texts?.get(rollout.seq);
        if (texts && !text) empty.push(rollout);
        else
          objects.push(text ? await this.writer.writeText(rollout, key, text, signal) : await this.writer.writeLines(rollout, key, signal));
      } catch (error) {
        if (isStoreAway(error)) away = error;
        else if (isFatal(error)) throw error;
        else this.#failed([rollout], error, pass);
      }
    });
    await this.#commit(objects, empty, pass, declared);
    if (away !== null) throw away;
  }

  /** Null when they cannot be had together, be it that one of them is too large for a text: then each is read by itself. */
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
    // A transcript without messages is none: the rows went elsewhere since the rollout was found.
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

  #failed(rollouts: readonly Sealable[], error: unknown, pass: SealPass): void {
    pass.failed += rollouts.length;
    this.#sealed.inc({ outcome: 'failed' }, rollouts.length);
    this.logger.warn({ err: error, rollouts: rollouts.map(({ id }) => id) }, 'rollouts were not sealed; their rows stay');
  }
}

/** It is one chunk, and can be read together with others. */
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

/** PostgreSQL is away: no rollout can be sealed. A statement that ran into its time limit (57014) says nothing of the next one. */
const isFatal = (error: unknown): boolean => isDatabaseUnavailable(error) && (error as { code?: string }).code !== '57014';
