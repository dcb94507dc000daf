import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import type pg from 'pg';
import type { Logger } from 'pino';
import { Database } from '../../platform/database/database.ts';
import { LOGGER } from '../../platform/tokens.ts';
import { inTransaction } from '../../platform/database/transaction.ts';
import { IngestService } from '../../store/ingest/ingest.service.ts';
import { COMPLETE, type SessionTranscript, transcribe } from './recording-events.ts';
import { advanceRecorded, claimSessions, leftBehind, nextCalls, type RecordedSession } from './recording.sql.ts';
import { ObserverList } from '../observers/observer-list.ts';
import { forgetWords, textsOf } from '../text/recorded-text.sql.ts';

const ROUND_MS = 1_000;
const SWEEP_MS = 30_000;
/** Sessions of one transaction. */
const BATCH = 100;
/** At the end of this process, what is left then is the work of the others, or of the next start. */
const LAST_ROUND_MS = 3_000;

/**
 * Writes sessions that were created with run metadata as rollouts, from the call ledger, through the statement of uploads. Each
 * replica writes what happens on it, once a second, and picks up what a dead one left. Ids follow from the calls, and the pointer
 * moves in the same transaction, so that nothing is lost or doubled whoever dies when.
 */
@Injectable()
export class Recorder implements OnApplicationBootstrap, OnApplicationShutdown {
  /** SIDs of which something may have to be written. */
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
    // Calls of this very second are written when they have settled.
    while (this.#dirty.size > 0 && Date.now() < deadline) {
      this.#enqueue(() => this.#writeDirty());
      await this.#round;
      if (this.#dirty.size > 0) await new Promise((resolve) => setTimeout(resolve, 250));
    }
    this.#stopped = true;
    await this.#round;
  }

  /** Writes what there is of a session that is to be recorded from now on. */
  async note(sid: string): Promise<void> {
    this.#dirty.add(sid);
    this.#enqueue(() => this.#writeDirty());
    await this.#round;
  }

  /** One at a time; a round that failed is done again by the next one. */
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
    // What happens from here on makes them dirty again.
    for (const sid of sids) this.#dirty.delete(sid);
    try {
      for (const sid of await this.#write(sids)) this.#dirty.add(sid);
    } catch (error) {
      if (sids.length === 1 && isOfData(error)) return this.logger.error({ err: error, sid: sids[0] }, 'a session cannot be recorded');
      if (!isOfData(error)) {
        for (const sid of sids) this.#dirty.add(sid);
        throw error;
      }
      // One of them cannot be stored: the others must not wait for it.
      for (const sid of sids) await this.#writeBatch([sid]);
    }
  }

  /** Answers those of which there is more to write. */
  #write(sids: string[]): Promise<string[]> {
    return inTransaction(this.database.pool, (client) => this.#writeClaimed(client, sids));
  }

  async #writeClaimed(client: pg.PoolClient, sids: string[]): Promise<string[]> {
    // The other one may have looked before what we know happened.
    const { sessions, busy } = await claimSessions(client, sids);
    if (sessions.length === 0) return busy;
    const calls = await nextCalls(client, sessions);
    // After the calls: a turn is there before its call has ended.
    const texts = await textsOf(
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
    const noted = await advanceRecorded(client, moved);
    await forgetWords(
      client,
      moved.flatMap(({ sid, seq }) => (seq === COMPLETE && noted.has(sid) && texts.has(sid) ? sid : [])),
    );
    const more = transcripts.filter(({ session, transcript }) => hasMore(session, transcript, noted)).map(({ session }) => session.sid);
    return [...busy, ...more];
  }

  async #store(client: pg.PoolClient, orgId: string, ofOrg: { session: RecordedSession; transcript: SessionTranscript }[]): Promise<void> {
    const events = ofOrg.flatMap(({ transcript }) => transcript.events);
    const failures = ofOrg.flatMap(({ transcript }) => transcript.failure ?? []);
    if (events.length === 0 && failures.length === 0) return;
    await this.ingest.record(client, orgId, events, failures);
  }
}

/** It is not written to its end: calls that run or are too fresh, an end that nobody could note yet. */
function hasMore(session: RecordedSession, transcript: SessionTranscript, noted: ReadonlySet<string>): boolean {
  if (transcript.seq !== session.recorded_seq && !noted.has(session.sid)) return true;
  return transcript.seq !== COMPLETE && (session.ended_at !== null || transcript.pending > 0);
}

/** SQLSTATE class 22: a value that PostgreSQL refuses, however often it is asked. */
const isOfData = (error: unknown): boolean => String((error as { code?: unknown }).code ?? '').startsWith('22');
