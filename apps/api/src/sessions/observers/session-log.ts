import { Inject, Injectable } from '@nestjs/common';
import type { FailureClass } from '@palestra/protocol';
import type { CallOutcome, SessionRecord } from '@palestra/session';
import { isDead } from '@palestra/session';
import type { Logger } from 'pino';
import { LOGGER } from '../../platform/tokens.ts';
import { ObserverList } from './observer-list.ts';

/**
 * Writes one line per change of a session and per failed call, with ids and codes only: never inputs, results, error texts (they are the
 * environment's), secrets or keys.
 */
@Injectable()
export class SessionLog {
  constructor(
    @Inject(LOGGER) private readonly logger: Logger,
    observers: ObserverList,
  ) {
    observers.add({
      sessionChanged: (record, before) => this.#changed(record, before),
      callEnded: (call, record, end) => {
        if (end.failureClass === 'ok') return;
        const fields = { ...idsOf(record), task_id: call.taskId, tool: call.tool, ran_ms: Math.round(end.ranMs), ...failureOf(end) };
        this.logger[end.failureClass === 'policy' ? 'debug' : 'info'](fields, 'call failed');
      },
      restored: (record, { calls, tookMs, outcome }) =>
        this.logger[outcome === 'restored' ? 'info' : 'warn'](
          { ...idsOf(record), calls, took_ms: Math.round(tookMs), outcome },
          'session replayed',
        ),
      admitted: (record, { waitedMs, outcome }) =>
        this.logger[outcome === 'refused' ? 'info' : 'debug'](
          { ...idsOf(record), waited_ms: Math.round(waitedMs), outcome },
          'session asked for a slot',
        ),
    });
  }

  #changed(record: SessionRecord, before: SessionRecord | null): void {
    if (before?.state === record.state) return;
    const { failureClass } = record;
    const failed = (isDead(record.state) || record.state === 'failed') && failureClass !== null && failureClass !== 'ok';
    const fields = {
      ...idsOf(record),
      from: before?.state ?? null,
      to: record.state,
      ...(failed ? { failure_class: failureClass, code: record.failure?.code } : {}),
    };
    this.logger[failed ? 'info' : 'debug'](fields, 'session changed');
  }
}

const idsOf = (record: SessionRecord) => ({ sid: record.sid, environment: record.environment, org: record.orgId });

function failureOf({ outcome, failureClass }: { outcome: CallOutcome; failureClass: FailureClass }) {
  const code = outcome.type === 'refused' ? outcome.code : outcome.type === 'result' ? outcome.reason : 'tool_failed';
  return { failure_class: failureClass, code };
}
