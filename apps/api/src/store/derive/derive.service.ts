import { Inject, Injectable } from '@nestjs/common';
import {
  type FailureCause,
  inferSteps,
  MESSAGE_FLAGS,
  type MessageSkeleton,
  NORMALISER_VERSION,
  type NormalisedRollout,
  normaliseRollout,
  provenanceShift,
  type RunSettings,
  withProvenance,
} from '@palestra/rollouts';
import { type JsonObject, type KnownPhase, PHASES, PROVENANCE_FIELDS, type ProvenanceField, PROVENANCES } from '@palestra/protocol';
import type pg from 'pg';
import { type Config, CONFIG } from '../../platform/config.ts';
import { retryDatabase } from '../../platform/database/database-retry.ts';
import { Database } from '../../platform/database/database.ts';
import { inTransaction } from '../../platform/database/transaction.ts';
import { codeOf, wordOf } from '../vocabulary-codes.ts';
import { bisectBatch, isItemFault, isObjectStoreUnavailable } from '../bisect-batch.ts';
import {
  type DirtyFilter,
  type DirtyHead,
  isBehind,
  type Lane,
  type NarrowRow,
  markOutdated,
  markOverdueGaps,
  markRuns,
  selectDirty,
  selectDueLanes,
  selectNewestDirty,
  selectRunSettings,
  selectUnsettled,
  type UnsettledRun,
  writeNarrowRows,
} from './derive.sql.ts';
import { Dictionary } from './dictionary.sql.ts';
import { failureCauses } from './failure-causes.ts';
import { narrowRow, rulesOf } from './narrow-row.ts';
import { markDue, selectArrivals, selectDueRuns, clearDue, withInferenceLock, writeInferred } from './infer.sql.ts';
import { RunRounds } from './run-rounds.ts';
import { RollupService } from '../figures/rollup.service.ts';
import { runAllStages, Quarantine } from '../quarantine.ts';
import { TranscriptReader } from '../storage/transcript-reader.service.ts';

/** How long a statement is repeated after a deadlock. */
const RETRY_MS = 2_000;
/** Rollouts per statement, and bytes of their messages in memory. A larger rollout is derived alone. */
const BATCH = 400;
const BATCH_BYTES = 32 * 1024 * 1024;
/** Messages of a rollout that is derived: some 1.2 kB of memory each. One with more is stored and readable, and has no figures. */
const MAX_MESSAGES = 500_000;
/** Runs whose steps are inferred in one round. */
const INFERRED_RUNS = 20;
/** Largest share of the time for steps that are inferred again while uploads continue: each reads all arrivals of its run. */
const INFERENCE_SHARE = 0.5;
/** Batches that one call to settle a run derives at most. */
const SETTLE_BATCHES = 4;
/** While the object store is unavailable, sealed rollouts wait this long for the next attempt, and others do not wait for them. */
const STORE_RETRY_MS = 15_000;
/** Runs that one call settles at most. */
const SETTLE_RUNS = 20;

const bitsOf = (...fields: ProvenanceField[]) => fields.reduce((bits, field) => bits | (3 << provenanceShift(field)), 0);
const BITS = {
  mask: bitsOf('step'),
  inferred: PROVENANCES.indexOf('inferred') << provenanceShift('step'),
  kept: bitsOf('step', 'group', 'sample', 'phase'),
  telemetry: bitsOf('telemetry'),
};

/**
 * Derives narrow rows from raw rows: normalises changed rollouts, infers steps that were not reported, and has the figures of changed steps
 * computed again. It depends only on the raw rows and on the age of the last one (for gaps), so that a repeated run, on two replicas or
 * after a crash, changes nothing.
 */
@Injectable()
export class DeriveService {
  readonly #dictionary: Dictionary;
  #outdatedAfter: string | null = '0';
  #sealedAfter = 0;
  #inferAfter = 0;
  readonly #rounds = new RunRounds();

  constructor(
    private readonly database: Database,
    private readonly rollups: RollupService,
    private readonly quarantine: Quarantine,
    @Inject(TranscriptReader) private readonly transcripts: TranscriptReader,
    @Inject(CONFIG) private readonly config: Config,
  ) {
    this.#dictionary = new Dictionary(database.pool);
  }

  /** One batch of narrow rows, the upkeep and one batch of figures, one after another. Returns whether there is more. */
  round(): Promise<boolean> {
    return runAllStages(
      () => this.deriveLane({ number: 0, of: 1 }),
      () => this.upkeep(),
      () => this.rollups.round(),
    );
  }

  /** Which of so many lanes have changed rollouts. */
  dueLanes(lanes: number): Promise<number[]> {
    return selectDueLanes(this.database.pool, lanes, this.quarantine.members('rollout'));
  }

  /** Derives the next batch of changed rollouts of the lane, one run after another. Returns whether there may be more. */
  async deriveLane(lane: Lane): Promise<boolean> {
    const heads = await this.#rounds.next(lane, {
      select: (range) => this.#selectBatch({ lane, range }),
      selectNewest: () => selectNewestDirty(this.database.pool),
    });
    await this.#deriveHeads(heads);
    return heads.length > 0;
  }

  /** Whether rows of an older normaliser may exist that `upkeep` has not marked. */
  mayBeOutdated(): boolean {
    return this.#outdatedAfter !== null;
  }

  /** Infers steps of runs whose upload names none, and marks rollouts that become outdated without an event. Returns whether there may be more. */
  async upkeep(): Promise<boolean> {
    const { pool } = this.database;
    return runAllStages(
      async () => (await markOverdueGaps(pool, BATCH)) === BATCH,
      async () => {
        if (performance.now() < this.#inferAfter) return false;
        const started = performance.now();
        for (const runSeq of await selectDueRuns(pool, INFERRED_RUNS, this.quarantine.members('run').map(Number))) await this.infer(runSeq);
        const now = performance.now();
        this.#inferAfter = now + (now - started) * (1 / INFERENCE_SHARE - 1);
        return false;
      },
      async () => {
        // A page at a time, so that uploads do not wait until the whole store is derived again.
        if (this.#outdatedAfter === null || (await isBehind(pool, BATCH, this.quarantine.members('rollout')))) return false;
        const { last } = await markOutdated(pool, NORMALISER_VERSION, this.#outdatedAfter, 5_000);
        this.#outdatedAfter = last;
        return last !== null;
      },
    );
  }

  /** Derives what waits in these runs, a bounded amount of it. Returns whether anything waited. Reads use `ReadSettler`, which limits the time. */
  async settle(runSeqs: readonly number[]): Promise<boolean> {
    const unsettled = await selectUnsettled(this.database.pool, runSeqs, this.quarantine.members('rollout'), 1);
    for (const run of unsettled.slice(0, SETTLE_RUNS)) await this.settleRun(run);
    return unsettled.length > 0;
  }

  async settleRun({ seq, waiting, inference_due }: UnsettledRun): Promise<void> {
    const derived = waiting > 0 ? await this.#deriveSome({ runSeq: seq }) : 0;
    if (inference_due || derived > 0) await this.infer(seq);
    await this.rollups.settle(seq);
  }

  /** The same for one rollout, by `seq` of its head: its narrow row only. */
  settleRollout(seq: string): Promise<number> {
    return this.#deriveSome({ seq });
  }

  async #deriveSome(filter: { runSeq: number } | { seq: string }): Promise<number> {
    let derived = 0;
    for (let batch = 0; batch < SETTLE_BATCHES; batch += 1) {
      const heads = await this.#selectBatch(filter);
      if (heads.length === 0) break;
      await this.#deriveHeads(heads);
      derived += heads.length;
    }
    return derived;
  }

  /** Normalises all rollouts of a run again, with its present settings. */
  renormalise(runSeq: number): Promise<void> {
    return retryDatabase(() => markRuns(this.database.pool, [runSeq]), RETRY_MS);
  }

  #selectBatch(filter: DirtyFilter): Promise<DirtyHead[]> {
    return selectDirty(this.database.pool, filter, {
      limit: BATCH,
      bytes: BATCH_BYTES,
      sealed: Date.now() >= this.#sealedAfter,
      without: this.quarantine.members('rollout'),
    });
  }

  async #deriveHeads(heads: readonly DirtyHead[]): Promise<void> {
    if (heads.length === 0) return;
    await bisectBatch(
      heads,
      (part) => this.#deriveAvailable(part),
      ({ seq, id }, error) => this.quarantine.add('rollout', seq, error, id),
      isItemFault,
    );
  }

  /** Skips sealed rollouts while the object store is unavailable. */
  async #deriveAvailable(heads: readonly DirtyHead[]): Promise<void> {
    try {
      await this.#derive(heads);
    } catch (error) {
      const live = heads.filter(({ sealed }) => !sealed);
      if (!isObjectStoreUnavailable(error) || live.length === heads.length) throw error;
      this.#sealedAfter = Date.now() + STORE_RETRY_MS;
      if (live.length > 0) await this.#derive(live);
    }
  }

  async #derive(heads: readonly DirtyHead[]): Promise<void> {
    const { pool } = this.database;
    const vast = heads.find(({ messages }) => messages > MAX_MESSAGES);
    if (vast) throw new Error(`rollout ${vast.id} has ${vast.messages} messages, more than ${MAX_MESSAGES}`);
    const [messages, runs] = await Promise.all([
      this.transcripts.skeletons(heads),
      selectRunSettings(pool, [...new Set(heads.map((head) => head.run_seq))]),
    ]);
    const maxTurns = new Map([...runs].map(([seq, run]) => [seq, run.max_turns]));
    const messagesOf = (head: DirtyHead) => messages.get(head.seq) ?? [];
    const rawOf = (head: DirtyHead, prompt: string | null) => ({
      id: head.id,
      start: head.start,
      rolloutInfo: head.rollout_info ?? {},
      messages: messagesOf(head),
      prompt,
      startedAt: startedAt(head.start),
      receivedAt: head.received_at,
      lastReceivedAt: head.last_at,
      failureClass: head.failure_class,
      ledgerTask: head.ledger_task,
      nonfinite: (head.flags & MESSAGE_FLAGS.nonfinite) !== 0,
    });
    const normalise = (head: DirtyHead, prompt: string | null) =>
      normaliseRollout(rawOf(head, prompt), settingsOf(runs.get(head.run_seq)?.settings), {
        runMaxTurns: maxTurns.get(head.run_seq) ?? null,
      });
    const rollouts = heads.map((head) => normalise(head, null));
    const before = new Map(maxTurns);
    const grown = new Set<number>();
    heads.forEach((head, at) => {
      const turns = rollouts[at]!.turns;
      if (turns === null || turns <= (maxTurns.get(head.run_seq) ?? 0)) return;
      grown.add(head.run_seq);
      maxTurns.set(head.run_seq, turns);
    });
    const nameless = heads.filter((_head, at) => rollouts[at]!.taskKey === null);
    const prompts = nameless.length > 0 ? await this.transcripts.prompts(nameless) : new Map<string, string | null>();
    heads.forEach((head, at) => {
      const prompt = prompts.get(head.seq) ?? null;
      if (prompt !== null || maxTurns.get(head.run_seq) !== before.get(head.run_seq)) rollouts[at] = normalise(head, prompt);
    });
    const causes = await failureCauses(
      this.transcripts,
      heads.map((head, at) => ({ head, rollout: rollouts[at]!, messages: messagesOf(head) })),
    );
    const rows = await this.#narrowRows(heads, rollouts, messagesOf, causes, (head) => settingsOf(runs.get(head.run_seq)?.settings));
    // The normaliser compares turns with the longest rollout of the run (docs/reference/metrics.md#stop-reason), so that a longer one
    // changes the others. This also holds for the first ones of a run: another lane may be deriving others, and know none of these.
    const outdated = rollouts.some(({ source }) => source === 'skyrl') ? [...grown] : [];
    await retryDatabase(() => this.#write(rows, outdated), RETRY_MS);
  }

  /**
   * One transaction, so that readers see rows and their marks together. Marks first, because heads are locked before rows everywhere.
   * `outdatedRuns`: their other rollouts are marked.
   */
  async #write(rows: readonly NarrowRow[], outdatedRuns: readonly number[]): Promise<void> {
    const { pool } = this.database;
    if (outdatedRuns.length === 0) return void (await writeNarrowRows(pool, rows, BITS));
    await inTransaction(pool, async (client) => {
      await markRuns(
        client,
        outdatedRuns,
        rows.map(({ seq }) => seq),
      );
      await writeNarrowRows(client, rows, BITS);
    });
  }

  async #narrowRows(
    heads: readonly DirtyHead[],
    rollouts: readonly NormalisedRollout[],
    messagesOf: (head: DirtyHead) => readonly MessageSkeleton[],
    causes: ReadonlyMap<string, FailureCause>,
    settingsOfRun: (head: DirtyHead) => RunSettings,
  ): Promise<NarrowRow[]> {
    const envIds = await this.#dictionary.environments(
      heads.map((head, at) => ({ orgId: head.org_id, environment: rollouts[at]!.environment, variant: rollouts[at]!.variant })),
    );
    const named = rollouts.flatMap(({ taskKey, split, taskIndex }, at) =>
      taskKey === null ? [] : { at, name: { orgId: heads[at]!.org_id, envId: envIds[at]!, key: taskKey, split, taskIndex } },
    );
    const taskIds = await this.#dictionary.tasks(named.map(({ name }) => name));
    const ruleIds = await this.#dictionary.rules(rollouts.map(rulesOf));
    const taskIdAt = new Map(named.map(({ at }, position) => [at, taskIds[position]!]));
    return heads.map((head, at) =>
      narrowRow(
        head,
        rollouts[at]!,
        messagesOf(head),
        causes.get(head.seq) ?? null,
        { envId: envIds[at]!, taskId: taskIdAt.get(at) ?? null, rulesId: ruleIds[at]! },
        { settings: settingsOfRun(head), gapGraceMs: this.config.gapGraceMs },
      ),
    );
  }

  /**
   * Infers the steps of rollouts without a reported step from the order of their arrival. Does nothing if no such rollout arrived or
   * changed since the last time.
   */
  async infer(runSeq: number): Promise<void> {
    await withInferenceLock(this.database.pool, runSeq, async (client) => {
      if (this.quarantine.members('run').includes(String(runSeq)) || !(await clearDue(client, runSeq))) return;
      try {
        await this.#inferLocked(client, runSeq);
      } catch (error) {
        // PostgreSQL may be restarting. Without its mark the run would wait for its next upload.
        await retryDatabase(() => markDue(this.database.pool, runSeq));
        if (!isItemFault(error)) throw error;
        this.quarantine.add('run', String(runSeq), error);
      }
    });
  }

  async #inferLocked(client: pg.PoolClient, runSeq: number): Promise<void> {
    const settings = settingsOf((await selectRunSettings(client, [runSeq])).get(runSeq)?.settings);
    const arrivals = await selectArrivals(client, runSeq, BITS.mask, BITS.inferred);
    const inferred = inferSteps(
      arrivals.map((row) => ({
        id: row.seq.padStart(20, '0'),
        taskKey: String(row.task_id),
        receivedAt: row.received_at,
        phase: reported(row.provenance, 'phase') ? phaseOf(row.phase) : null,
      })),
      settings,
    );
    const rows = arrivals.flatMap((row) => {
      const found = inferred.rollouts.get(row.seq.padStart(20, '0'));
      const step = found?.step ?? null;
      // A reported group id stays: only the step is unknown.
      const isGrouped = reported(row.provenance, 'group');
      const groupKey = isGrouped ? row.group_key : (found?.groupKey ?? null);
      const sampleIdx = reported(row.provenance, 'sample') ? row.sample_idx : (found?.sampleIdx ?? null);
      let provenance = withProvenance(row.provenance, 'step', step === null ? 'unknown' : 'inferred');
      if (!isGrouped) provenance = withProvenance(provenance, 'group', groupKey === null ? 'unknown' : 'inferred');
      if (!reported(row.provenance, 'sample'))
        provenance = withProvenance(provenance, 'sample', sampleIdx === null && groupKey === null ? 'unknown' : 'inferred');
      const phase = codeOf(PHASES, found?.phase) ?? row.phase;
      if (phase !== row.phase) provenance = withProvenance(provenance, 'phase', 'inferred');
      const same =
        phase === row.phase &&
        step === row.step &&
        groupKey === row.group_key &&
        sampleIdx === row.sample_idx &&
        provenance === row.provenance;
      return same ? [] : { seq: row.seq, revision: row.revision, phase, step, group_key: groupKey, sample_idx: sampleIdx, provenance };
    });
    const summary = { n: inferred.n, confidence: inferred.confidence, rollouts: arrivals.length };
    await retryDatabase(() => writeInferred(client, runSeq, rows, BITS, summary), RETRY_MS);
  }
}

const phaseOf = (code: number): KnownPhase | null => {
  const phase = wordOf(PHASES, code);
  return phase === 'unknown' ? null : phase;
};
const reported = (provenance: number, field: ProvenanceField) =>
  ((provenance >> provenanceShift(field)) & 3) >= codeOf(PROVENANCES, 'parsed')! && PROVENANCE_FIELDS.includes(field);
const settingsOf = (settings: JsonObject | undefined): RunSettings => (settings ?? {}) as RunSettings;
const startedAt = (start: JsonObject | null): number | null => (typeof start?.timestamp === 'number' ? start.timestamp : null);
