import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import type pg from 'pg';
import type { Logger } from 'pino';
import { Database } from '../../platform/database/database.ts';
import { LOGGER } from '../../platform/tokens.ts';
import { inTransaction } from '../../platform/database/transaction.ts';
import { isItemFault } from '../../store/bisect-batch.ts';
import { IngestService } from '../../store/ingest/ingest.service.ts';
import { COMPLETE, type SessionTranscript, transcribe } from './recording-events.ts';
import { advanceRecorded, claimSessions, leftBehind, nextCalls, type RecordedSession } from './recording.sql.ts';
import { ObserverList } from '../observers/observer-list.ts';
import { deleteTexts, readTexts } from '../text/recorded-text.sql.ts';

const ROUND_MS = 1_000;
const SWEEP_MS = 30_000;
/** How many sessions one transaction writes. */
const BATCH = 100;
/** How long to write at shutdown. Other processes or the next start write the rest. */
const LAST_ROUND_MS = 3_000;

/**
 * Writes sessions with run metadata as rollouts, from the call ledger, with the statement of uploads (ADR 11). Each replica writes its own
 * sessions once a second, and those of dead replicas. Ids follow from the calls, and the pointer moves in the same transaction, so a crash at
 * any time neither loses nor repeats events.
 */
@Injectable()
export class Recorder implements OnApplicationBootstrap, OnApplicationShutdown {
  /** SIDs of sessions that may have something to write. */
  readonly #dirty = new Set<string>();
  readonly #timers: NodeJS.Timeout[] = [];
  #round: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(
    private readonly database: Database,
    private readonly ingest: IngestService,
    @Inject(LOGGER) private readonly logger: Logger,
    observers: ObserverList,
  ) {
    observers.add({
      sessionChanged: (record) => void (record.recording !== null && this.#dirty.add(record.sid)),
      callEnded: (_call, record) => void (record.recording !== null && this.#dirty.add(record.sid)),
    });
  }

  onApplicationBootstrap(): void {
    this.#timers.push(
      setInterval(() => this.#enqueue(() => this.#writeDirty()), ROUND_MS),
      setInterval(() => this.#enqueue(() => this.#sweep()), SWEEP_MS),
    );
    this.#enqueue(() => this.#sweep());
  }

  async onApplicationShutdown(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    const deadline = Date.now() + LAST_ROUND_MS;
    // Calls of the last seconds are written when no earlier call can still appear.
    while (this.#dirty.size > 0 && Date.now() < deadline) {
      this.#enqueue(() => this.#writeDirty());
      await this.#round;
      if (this.#dirty.size > 0) await new Promise((resolve) => setTimeout(resolve, 250));
    }
    this.#stopped = true;
    await this.#round;
  }

  /** Writes the events of a session so far. */
  async writeSession(sid: string): Promise<void> {
    this.#dirty.add(sid);
    this.#enqueue(() => this.#writeDirty());
    await this.#round;
  }

  /** Rounds run one at a time. The next round repeats a failed one. */
  #enqueue(work: () => Promise<void>): void {
    if (this.#stopped) return;
    this.#round = this.#round
      .then(work)
      .catch((error: unknown) => this.logger.warn({ err: error }, 'sessions were not recorded; they will be'));
  }

  async #sweep(): Promise<void> {
    for (let after = ''; ;) {
      const sids = await leftBehind(this.database.pool, after, BATCH);
      for (const sid of sids) this.#dirty.add(sid);
      if (sids.length < BATCH) return;
      after = sids.at(-1)!;
    }
  }

  async #writeDirty(): Promise<void> {
    const sids = [...this.#dirty];
    for (let from = 0; from < sids.length; from += BATCH) await this.#writeBatch(sids.slice(from, from + BATCH));
  }

  async #writeBatch(sids: string[]): Promise<void> {
    // Later events mark them as dirty again.
    for (const sid of sids) this.#dirty.delete(sid);
    try {
      for (const sid of await this.#write(sids)) this.#dirty.add(sid);
    } catch (error) {
      // The sweep tries it again.
      if (sids.length === 1 && isItemFault(error)) return this.logger.error({ err: error, sid: sids[0] }, 'a session cannot be recorded');
      if (!isItemFault(error)) {
        for (const sid of sids) this.#dirty.add(sid);
        throw error;
      }
      // One of them cannot be stored. Write the others without it.
      for (const sid of sids) await this.#writeBatch([sid]);
    }
  }

  /** Returns the sessions that have more to write. */
  #write(sids: string[]): Promise<string[]> {
    return inTransaction(this.database.pool, (client) => this.#writeClaimed(client, sids));
  }

  async #writeClaimed(client: pg.PoolClient, sids: string[]): Promise<string[]> {
    // Busy ones stay dirty: the process that holds them may have read them before our events.
    const { sessions, busy } = await claimSessions(client, sids);
    if (sessions.length === 0) return busy;
    const calls = await nextCalls(client, sessions);
    // Read after the calls, because a turn is stored before its call ends.
    const texts = await readTexts(
      client,
      sessions.map(({ sid, recorded_seq: seq }) => ({ sid, after: seq ?? '0' })),
    );
    const transcripts = sessions.map((session) => {
      const { sid } = session;
      return { session, transcript: transcribe(session, calls.get(sid) ?? [], texts.get(sid) ?? null) };
    });
    for (const orgId of new Set(sessions.map((session) => session.org_id))) {
      await this.#store(
        client,
        orgId,
        transcripts.filter(({ session }) => session.org_id === orgId),
      );
    }
    const moved = transcripts.flatMap(({ session, transcript: { seq } }) =>
      seq === null || seq === session.recorded_seq ? [] : { sid: session.sid, seq },
    );
    const advanced = await advanceRecorded(client, moved);
    await deleteTexts(
      client,
      moved.flatMap(({ sid, seq }) => (seq === COMPLETE && advanced.has(sid) && texts.has(sid) ? sid : [])),
    );
    const more = transcripts.filter(({ session, transcript }) => hasMore(session, transcript, advanced)).map(({ session }) => session.sid);
    return [...busy, ...more];
  }

  async #store(client: pg.PoolClient, orgId: string, ofOrg: { session: RecordedSession; transcript: SessionTranscript }[]): Promise<void> {
    const events = ofOrg.flatMap(({ transcript }) => transcript.events);
    const failures = ofOrg.flatMap(({ transcript }) => transcript.failure ?? []);
    if (events.length === 0 && failures.length === 0) return;
    await this.ingest.record(client, orgId, events, failures);
  }
}

/** Whether the session is not written completely: calls run or are too recent, or the pointer could not be moved. */
function hasMore(session: RecordedSession, transcript: SessionTranscript, advanced: ReadonlySet<string>): boolean {
  if (transcript.seq !== session.recorded_seq && !advanced.has(session.sid)) return true;
  return transcript.seq !== COMPLETE && (session.ended_at !== null || transcript.pending > 0);
}
