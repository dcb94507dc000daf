import { Injectable } from '@nestjs/common';
import { SESSION_STATES } from '@palestra/protocol';
import { isDead } from '@palestra/session';
import { Database } from '../../platform/database/database.ts';
import { BoundedLabel, Metrics } from '../../platform/telemetry/metrics.ts';
import { ObserverList } from './observer-list.ts';
import { countLiveSessions, type SessionCount } from './session-counts.sql.ts';

/** How long the counts are cached, so that several scrapers share one query. */
const COUNTS_MAX_AGE_MS = 5_000;
const MAX_TOOLS = 500;

/**
 * Prometheus metrics of sessions and calls. Gauges of live sessions come from PostgreSQL, so each replica reports the totals: read them from one
 * replica, do not sum them. Counters are per replica.
 */
@Injectable()
export class SessionMetrics {
  readonly #environments = new BoundedLabel();
  readonly #tools = new BoundedLabel(MAX_TOOLS);
  #counts: { at: number; rows: Promise<SessionCount[]> } = { at: -Infinity, rows: Promise.resolve([]) };

  constructor(
    private readonly database: Database,
    metrics: Metrics,
    observers: ObserverList,
  ) {
    this.#gauges(metrics);
    this.#observeSessions(metrics, observers);
    this.#observeCalls(metrics, observers);
    this.#observeQueue(metrics, observers);
  }

  #gauges(metrics: Metrics): void {
    const living = SESSION_STATES.filter((state) => !isDead(state));
    metrics.gauge('palestra_sessions', 'Living sessions of all replicas', ['environment', 'state'], async (gauge) => {
      gauge.reset();
      const rows = await this.#counted();
      // Report 0 for states without sessions, which scrapers could not tell from missing values.
      for (const environment of new Set(rows.map((row) => row.environment))) {
        for (const state of living) gauge.set({ environment: this.#environment(environment), state }, 0);
      }
      for (const row of rows) gauge.inc({ environment: this.#environment(row.environment), state: row.state }, row.sessions);
    });
    metrics.gauge('palestra_sessions_waiting', 'Sessions of all replicas that wait for a slot', ['environment'], async (gauge) => {
      gauge.reset();
      for (const row of await this.#counted()) gauge.inc({ environment: this.#environment(row.environment) }, row.waiting);
    });
  }

  #counted(): Promise<SessionCount[]> {
    const now = Date.now();
    if (now - this.#counts.at > COUNTS_MAX_AGE_MS) {
      // Without PostgreSQL, a scrape still gets the other metrics.
      this.#counts = { at: now, rows: countLiveSessions(this.database.pool).catch(() => []) };
    }
    return this.#counts.rows;
  }

  #environment(name: string | null): string {
    return name === null || name === '' ? 'none' : this.#environments.of(name);
  }

  #observeSessions(metrics: Metrics, observers: ObserverList): void {
    const opened = metrics.counter('palestra_sessions_opened_total', 'Sessions that reached their environment', ['environment']);
    const ended = metrics.counter('palestra_sessions_ended_total', 'Sessions that ended, by state and by whose failure it was', [
      'environment',
      'state',
      'failure_class',
    ]);
    const restores = metrics.counter('palestra_session_restores_total', 'Replays of sessions whose process died', [
      'environment',
      'outcome',
    ]);
    const replayed = metrics.histogram('palestra_session_restore_duration_seconds', 'Duration of replays', ['environment']);
    observers.add({
      sessionChanged: (record, before) => {
        const environment = this.#environment(record.environment);
        if (record.ref !== null && (before === null || before.ref === null) && before?.state !== 'restoring') opened.inc({ environment });
        // `failed` is not an end: the client can still read the reason.
        if (isDead(record.state) && before !== null && !isDead(before.state)) {
          ended.inc({ environment, state: record.state, failure_class: record.failureClass ?? 'ok' });
        }
      },
      restored: (record, { outcome, tookMs }) => {
        const environment = this.#environment(record.environment);
        restores.inc({ environment, outcome });
        replayed.observe({ environment }, tookMs / 1_000);
      },
    });
  }

  #observeCalls(metrics: Metrics, observers: ObserverList): void {
    const calls = metrics.counter('palestra_calls_total', 'Tool calls that ended, by whose failure it was', [
      'environment',
      'tool',
      'failure_class',
    ]);
    const duration = metrics.histogram('palestra_call_duration_seconds', 'From start to end of the tool', ['environment', 'failure_class']);
    let running = 0;
    metrics.gauge('palestra_calls_running', 'Calls that run on this replica', [], (gauge) => gauge.set(running));
    observers.add({
      callStarted: () => void (running += 1),
      callEnded: (call, record, { failureClass, ranMs, outcome }) => {
        running -= 1;
        const environment = this.#environment(record.environment);
        // The client made up names of tools that do not exist.
        const invented = outcome.type === 'result' && outcome.reason === 'not_found';
        calls.inc({ environment, tool: invented ? 'unknown' : this.#tools.of(call.tool), failure_class: failureClass });
        duration.observe({ environment, failure_class: failureClass }, ranMs / 1_000);
      },
    });
  }

  #observeQueue(metrics: Metrics, observers: ObserverList): void {
    const waits = metrics.histogram('palestra_queue_wait_seconds', 'How long sessions waited for a slot, and what became of it', [
      'environment',
      'outcome',
    ]);
    observers.add({
      admitted: (record, { waitedMs, outcome }) =>
        waits.observe({ environment: this.#environment(record.environment), outcome }, waitedMs / 1_000),
    });
  }
}
