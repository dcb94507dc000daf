import { randomUUID } from 'node:crypto';
import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { groupBy } from '@palestra/metrics';
import type { SilenceCondition } from '@palestra/protocol';
import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import { JobQueue } from '../jobs/job-queue.service.ts';
import { Database } from '../platform/database/database.ts';
import { inTransaction } from '../platform/database/transaction.ts';
import { LOGGER } from '../platform/tokens.ts';
import { selectPending } from '../store/derive/derive.sql.ts';
import { AlertFigures, type StepRange } from './alert-figures.service.ts';
import { advance, type Judgement } from './alert-state.ts';
import {
  type AlertedRun,
  type BaselineRun,
  deleteOldEvents,
  endStatesOfOverRuns,
  insertEvent,
  selectAlertedOrganisations,
  selectAlerts,
  selectBaselines,
  selectLiveRuns,
  selectStates,
  type StoredAlert,
  type StoredState,
  storeState,
} from './alert.sql.ts';
import { countRecent, selectLastEvent } from './run-arrivals.sql.ts';
import { matchesName } from './run-name-pattern.ts';
import { countedQuery, judgeCount, judgeFinished, judgeSilence } from './time-judgements.ts';
import { AlertMessages } from './alert-messages.ts';
import { EnvironmentAlerts } from './environment-alerts.ts';

const EVERY_MS = 10_000;
const HOUR_MS = 3_600_000;
/** Judgements of one organisation in one round: 600 per minute. The others follow, those that waited longest first. */
const MAX_JUDGEMENTS = 100;
const KEEP_EVENTS_DAYS = 90;
const BATCH = 1_000;
const MAX_FAILED = 50_000;

interface Pair {
  alert: StoredAlert;
  run: AlertedRun;
  /** Of a condition on a baseline; null also when that is the run itself, or was deleted. */
  baseline: BaselineRun | null;
  state: StoredState | null;
}

/**
 * Judges alerts in the background. A condition on steps is judged when the figures of its run or baseline changed, one on
 * time in each round.
 */
@Injectable()
export class AlertEvaluator implements OnModuleInit {
  /** Where the next round begins, so that a round that reaches its deadline does not starve the same organisations. */
  #first = 0;
  /** When judgements last failed, which store no time. Without it they would come first in each round, before those that can be judged. */
  readonly #failed = new LRUCache<string, number>({ max: MAX_FAILED });

  constructor(
    private readonly jobs: JobQueue,
    private readonly database: Database,
    private readonly figures: AlertFigures,
    private readonly messages: AlertMessages,
    private readonly environments: EnvironmentAlerts,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  onModuleInit(): void {
    this.jobs.handle('evaluate-alerts', { everyMs: EVERY_MS, deadlineMs: 60_000 }, (_payload, signal) => this.round(signal));
    this.jobs.handle('forget-alert-events', { everyMs: HOUR_MS, deadlineMs: HOUR_MS }, async (_payload, signal) => {
      while (!signal.aborted && (await deleteOldEvents(this.database.pool, KEEP_EVENTS_DAYS, BATCH)) === BATCH);
    });
  }

  /** Judges what is due in every organisation. */
  async round(signal: AbortSignal): Promise<void> {
    await this.environments.addDefaults();
    const organisations = await selectAlertedOrganisations(this.database.pool);
    const start = this.#first % Math.max(1, organisations.length);
    for (const orgId of [...organisations.slice(start), ...organisations.slice(0, start)]) {
      if (signal.aborted) return;
      this.#first += 1;
      await this.#ofOrganisation(orgId, signal);
    }
  }

  async #ofOrganisation(orgId: string, signal: AbortSignal): Promise<void> {
    const { pool } = this.database;
    await endStatesOfOverRuns(pool, orgId);
    const [alerts, runs] = await Promise.all([selectAlerts(pool, orgId), selectLiveRuns(pool, orgId)]);
    await this.environments.judge(alerts, signal);
    const due = await this.#due(orgId, alerts, runs);
    const pending = await selectPending(pool, [...new Set(due.flatMap(judgedRuns))]);
    for (const pair of due) {
      if (signal.aborted) return;
      try {
        await this.#judge(
          pair,
          judgedRuns(pair).some((seq) => pending.has(seq)),
        );
        this.#failed.delete(keyOf(pair));
      } catch (error) {
        this.#failed.set(keyOf(pair), Date.now());
        this.logger.warn({ err: error, alert: pair.alert.id, run: pair.run.id }, 'an alert was not judged; the next round repeats it');
      }
    }
  }

  async #due(orgId: string, alerts: readonly StoredAlert[], runs: readonly AlertedRun[]): Promise<Pair[]> {
    const ids = alerts.map(({ id }) => id);
    const { pool } = this.database;
    const seqs = runs.map(({ seq }) => seq);
    const conditions = alerts.map(({ condition }) => condition);
    const [states, baselines] = await Promise.all([selectStates(pool, ids, seqs), selectBaselines(pool, orgId, conditions)]);
    const baselineOf = ({ condition }: StoredAlert, run: AlertedRun): BaselineRun | null => {
      const baseline = condition.kind === 'baseline' ? baselines.get(condition.run) : undefined;
      return baseline && baseline.seq !== run.seq ? baseline : null;
    };
    const byAlert = groupBy(states, (state) => state.alert_id);
    const pairs = alerts.flatMap((alert) => {
      const known = new Map((byAlert.get(alert.id) ?? []).map((state) => [state.run_seq, state]));
      return runs
        .filter(({ name }) => matchesName(alert.runs, name))
        .map((run): Pair => ({ alert, run, baseline: baselineOf(alert, run), state: known.get(run.seq) ?? null }))
        .filter(isDue);
    });
    const failedAt = (pair: Pair) => this.#failed.get(keyOf(pair)) ?? 0;
    const age = (pair: Pair) => Math.max(pair.state?.checked_at.getTime() ?? 0, failedAt(pair));
    const chosen = pairs.toSorted((one, other) => age(one) - age(other)).slice(0, MAX_JUDGEMENTS);
    const waited = new Map<number, number>();
    for (const pair of chosen) waited.set(pair.run.seq, Math.min(age(pair), waited.get(pair.run.seq) ?? Infinity));
    const waitedOf = ({ run }: Pair) => waited.get(run.seq)!;
    // A round may end at any of them. Those that failed last, because each may take long; alerts of one run together: they share its figures.
    return chosen.toSorted(
      (one, other) => failedAt(one) - failedAt(other) || waitedOf(one) - waitedOf(other) || one.run.seq - other.run.seq,
    );
  }

  async #judge(pair: Pair, isPending: boolean): Promise<void> {
    const { alert, run, state } = pair;
    const judgements = await this.#judgements(pair, isPending);
    const { firing, changes } = advance(state?.firing ?? false, judgements);
    const last = judgements.at(-1);
    const next = {
      firing,
      changed: changes.length > 0,
      // While rollouts wait, the same version is judged again.
      version: isPending ? '-1' : versionOf(pair),
      step: last?.step ?? state?.step ?? null,
      evidence: last?.evidence ?? null,
    };
    await inTransaction(this.database.pool, async (client) => {
      if (!(await storeState(client, alert, run.seq, state?.checked_at ?? null, next))) return;
      for (const { kind, judgement } of changes) {
        const event = { id: randomUUID(), kind, evidence: judgement.evidence };
        const at = await insertEvent(client, { ...event, orgId: alert.org_id, alertId: alert.id, runSeq: run.seq, muted: alert.muted });
        if (!alert.muted && alert.webhook_id !== null) await this.messages.add(client, alert, { run, environment: null }, { ...event, at });
      }
    });
  }

  async #judgements({ alert, run, baseline, state }: Pair, isPending: boolean): Promise<Judgement[]> {
    const { condition } = alert;
    // A run that existed before the alert is judged by its newest step first: its history is no news.
    const isNew = run.created_at >= alert.since;
    const range: StepRange = { from: state?.step ?? (isNew ? 0 : null), withoutNewest: isPending };
    switch (condition.kind) {
      case 'metric':
        return (await this.figures.metric(run, condition, range)).judgements;
      case 'baseline':
        return baseline === null ? [] : (await this.figures.baseline(run, condition, baseline, range)).judgements;
      case 'count':
        return [judgeCount(condition, await countRecent(this.database.pool, run.seq, countedQuery(condition), condition.minutes), null)];
      // Not of a run: `EnvironmentAlerts` judges it.
      case 'crashes':
        return [];
      case 'silence':
        if (run.finished) return [judgeFinished(condition)];
        if (condition.environment === null) return [judgeSilence(condition, run.now.getTime() - run.updated_at.getTime(), null)];
        // The environment of rollouts that wait is not known yet.
        return isPending ? [] : this.#environmentSilence(alert, run, condition);
    }
  }

  async #environmentSilence(alert: StoredAlert, { seq }: AlertedRun, condition: SilenceCondition): Promise<Judgement[]> {
    const { at, now } = await selectLastEvent(this.database.pool, seq, condition.environment);
    return at !== null && isNews(alert, at, condition.minutes) ? [judgeSilence(condition, now - at, null)] : [];
  }
}

/** Silence that began before the alert watched it is no news. */
const isNews = ({ since }: StoredAlert, lastEventAt: number, minutes: number): boolean => lastEventAt > since.getTime() - minutes * 60_000;

const keyOf = ({ alert, run }: Pair): string => `${alert.id} ${run.seq}`;

const judgedRuns = ({ run, baseline }: Pair): number[] => (baseline ? [run.seq, baseline.seq] : [run.seq]);

/** Of the figures that are judged. The versions of a run only grow, so their sum changes with either run. */
const versionOf = ({ run, baseline }: Pair): string => String(BigInt(run.version) + BigInt(baseline?.version ?? 0));

function isDue(pair: Pair): boolean {
  const { alert, run, state } = pair;
  const { condition } = alert;
  if (condition.kind === 'metric' || condition.kind === 'baseline') return state?.version !== versionOf(pair);
  if (condition.kind === 'crashes') return false;
  if (condition.kind === 'silence')
    return run.finished ? state?.firing === true : isNews(alert, run.updated_at.getTime(), condition.minutes);
  const windowMs = condition.minutes * 60_000;
  return state?.firing === true || run.now.getTime() - run.updated_at.getTime() < windowMs;
}
