import { Injectable } from '@nestjs/common';
import { type AlertCondition, PalestraError } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { Database } from '../platform/database/database.ts';
import { TenantConcurrency } from '../platform/tenant-concurrency.ts';
import { type RunScope, RunScopes } from '../runs/run-scope.ts';
import { selectEnvironments } from '../store/figures/step-figures.sql.ts';
import { AlertFigures } from './alert-figures.service.ts';
import { advance, type Judgement } from './alert-state.ts';
import { selectBaselines } from './alert.sql.ts';
import { MAX_ARRIVALS, selectArrivals, selectLastEvent, selectPauses } from './run-arrivals.sql.ts';
import { countedQuery, countHistory, silenceHistory } from './time-judgements.ts';

const MAX_FIRES = 100;
/** Environments that an error names. */
const MAX_NAMED = 10;
const LIMITS = { owner: 2, all: 8 };
/** Of PostgreSQL: the statement reached its timeout. */
const QUERY_CANCELED = '57014';

interface History {
  judgements: Judgement[];
  judged: number;
  skipped: number;
  incomplete: boolean;
}

/** When an alert would have fired in a run, judged by the code that judges it. */
@Injectable()
export class AlertPreviews {
  readonly #limits = new TenantConcurrency('previews of alerts', LIMITS);

  constructor(
    private readonly database: Database,
    private readonly scopes: RunScopes,
    private readonly figures: AlertFigures,
  ) {}

  /** Throws `run_not_found`, `invalid_body` for an environment that the run does not have, `too_expensive`, `capacity_exhausted`. */
  async preview(caller: Caller, run: string, condition: AlertCondition) {
    return this.#limits.use(caller.orgId, async () => {
      const scope = await this.scopes.open(caller, run);
      if (condition.environment !== null && condition.kind !== 'crashes') await this.#assertEnvironment(scope.seq, condition.environment);
      const history = await this.#history(scope, condition);
      const fires = history.judgements.filter(({ holds }, at) => holds && history.judgements[at - 1]?.holds !== true);
      return {
        judged: history.judged,
        skipped: history.skipped,
        firing_now: advance(false, history.judgements).firing,
        fires: fires
          .slice(-MAX_FIRES)
          .map(({ step, at, evidence }) => ({ step, at: at === null ? null : new Date(at).toISOString(), evidence })),
        fired: fires.length,
        incomplete: history.incomplete,
      };
    });
  }

  async #assertEnvironment(runSeq: number, environment: string): Promise<void> {
    const known = [...new Set((await selectEnvironments(this.database.pool, runSeq)).flatMap((one) => one.environment ?? []))].toSorted();
    if (known.includes(environment)) return;
    const others = known.length === 0 ? '' : ` It has ${known.slice(0, MAX_NAMED).join(', ')}.`;
    throw new PalestraError('invalid_body', { detail: `The run has no environment ${environment}.${others}` });
  }

  async #history(run: RunScope, condition: AlertCondition): Promise<History> {
    const { pool } = this.database;
    const whole = { from: 0, withoutNewest: run.pending !== null };
    switch (condition.kind) {
      case 'metric': {
        const found = await this.figures.metric(run, condition, whole);
        return { ...found, judged: found.judgements.length, incomplete: false };
      }
      case 'baseline': {
        const baseline = (await selectBaselines(pool, run.orgId, [condition])).get(condition.run);
        if (!baseline) throw new PalestraError('run_not_found');
        const found = await this.figures.baseline(run, condition, baseline, whole);
        return { ...found, judged: found.judgements.length };
      }
      case 'count': {
        const arrivals = await selectArrivals(pool, run.seq, countedQuery(condition)).catch(tooExpensive);
        return {
          judgements: countHistory(condition, arrivals),
          judged: arrivals.length,
          skipped: 0,
          incomplete: arrivals.length === MAX_ARRIVALS,
        };
      }
      case 'crashes':
        throw new PalestraError('invalid_request', { detail: 'This alert watches hosted environments, so it has no preview in a run.' });
      case 'silence': {
        const [pauses, last] = await Promise.all([
          selectPauses(pool, run.seq, condition.environment),
          selectLastEvent(pool, run.seq, condition.environment),
        ]);
        const lasting = last.at === null || last.finished ? [] : [{ from: last.at, to: last.now, lasts: true }];
        return {
          judgements: silenceHistory(condition, [...pauses, ...lasting]),
          judged: pauses.length,
          skipped: 0,
          incomplete: pauses.length === MAX_ARRIVALS,
        };
      }
    }
  }
}

function tooExpensive(error: unknown): never {
  if ((error as { code?: string }).code !== QUERY_CANCELED) throw error;
  throw new PalestraError('too_expensive', { detail: 'This query takes too long for an alert. Use fewer or other keys.', cause: error });
}
