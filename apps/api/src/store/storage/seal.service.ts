import { Inject, Injectable } from '@nestjs/common';
import { CHUNK_CHARACTERS, CHUNK_MESSAGES } from '@palestra/rollouts/transcript';
import type { Logger } from 'pino';
import { type Config, CONFIG } from '../../platform/config.ts';
import { isDatabaseUnavailable } from '../../platform/database/database-errors.ts';
import { Database } from '../../platform/database/database.ts';
import { Metrics } from '../../platform/telemetry/metrics.ts';
import { LOGGER } from '../../platform/tokens.ts';
import { isObjectStoreUnavailable, isStatementFault } from '../bisect-batch.ts';
import { ObjectGarbage } from './garbage.service.ts';
import { declareObjects } from './garbage.sql.ts';
import { mapLimit } from './map-limit.ts';
import { commitSeals, markSealed, type Sealable, type SealedTranscript, selectSealable, selectTexts } from './seal.sql.ts';
import { TranscriptWriter } from './transcript-writer.service.ts';

const CANDIDATES = 1_200;
/** Small rollouts of one run that one statement reads, one object holds, and one statement points to. */
const GROUP_ROLLOUTS = 100;
/** Bytes of their messages. */
const GROUP_BYTES = 8 * 1024 * 1024;
/** Groups in progress: one is read while the other is written. */
const CONCURRENT_GROUPS = 2;
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
 * Moves the messages of finished and silent rollouts into packs: compressed objects of rollouts of one run (ADR 27). It writes the object
 * first and checks its size. Then one transaction stores the pointers and deletes the rows. Before that transaction the rows are valid,
 * after it the object is: a crash leaves at most an object without a pointer, whose key was stored before (garbage.sql.ts).
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
    const { pool } = this.database;
    const texts = isSmall(group[0]!) ? await this.#texts(group) : null;
    // Together they cannot be read, for example because their text is too large.
    if (texts === null && group.length > 1) {
      for (const rollout of group) await this.#sealOrLeave([rollout], pass, signal);
      return;
    }
    const full = texts === null ? group : group.filter(({ seq }) => texts.has(seq));
    if (full.length < group.length)
      await markSealed(
        pool,
        group.filter(({ seq }) => !texts!.has(seq)),
      );
    if (full.length === 0) return;
    const object = { blob_key: this.writer.newKey(group[0]!.org_id), rollout_seq: '0' };
    await declareObjects(pool, [object]);
    // After an error the object may have pointers, if only the answer of COMMIT was lost. Otherwise the sweep finds its key.
    const pack =
      texts === null
        ? await this.writer.writeLines(full[0]!, object.blob_key, signal)
        : await this.writer.writeTexts(full, object.blob_key, texts, signal);
    // A transcript without messages is skipped: the rows were moved since the rollout was selected.
    const transcripts = pack.transcripts.filter(({ messages }) => messages > 0);
    const { sealed, emptied } = transcripts.length > 0 ? await commitSeals(pool, { ...pack, transcripts }) : { sealed: [], emptied: [] };
    this.#count(transcripts, sealed, pass);
    if (sealed.length === 0) await this.garbage.discard([object]);
    await this.garbage.deleteDoomed(emptied);
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

  #count(transcripts: readonly SealedTranscript[], sealed: readonly string[], pass: SealPass): void {
    const done = new Set(sealed);
    for (const { seq, messages, bytes } of transcripts) {
      if (!done.has(seq)) continue;
      pass.messages += messages;
      pass.bytes += bytes;
      this.#bytes.inc(bytes);
    }
    pass.sealed += sealed.length;
    pass.skipped += transcripts.length - sealed.length;
    this.#sealed.inc({ outcome: 'sealed' }, sealed.length);
    this.#sealed.inc({ outcome: 'skipped' }, transcripts.length - sealed.length);
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
  const groups: Sealable[][] = [];
  const open = new Map<string, { group: Sealable[]; bytes: number }>();
  for (const rollout of candidates) {
    if (!isSmall(rollout)) {
      groups.push([rollout]);
      continue;
    }
    const run = `${rollout.org_id} ${rollout.run_seq}`;
    const bytes = rollout.bytes + rollout.messages * LINE_BYTES;
    const last = open.get(run);
    if (last && last.bytes + bytes <= GROUP_BYTES && last.group.length < GROUP_ROLLOUTS) {
      last.group.push(rollout);
      last.bytes += bytes;
    } else {
      const group = [rollout];
      groups.push(group);
      open.set(run, { group, bytes });
    }
  }
  return groups;
}

/** PostgreSQL is unavailable, so that no rollout can be sealed. */
const isFatal = (error: unknown): boolean => isDatabaseUnavailable(error) && !isStatementFault(error);
