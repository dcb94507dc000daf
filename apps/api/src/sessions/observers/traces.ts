import { AsyncLocalStorage } from 'node:async_hooks';
import { Inject, Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import type { Attributes } from '@opentelemetry/api';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import type { CallIntent, SessionObserver, SessionRecord } from '@palestra/session';
import { isDead } from '@palestra/session';
import { type Config, CONFIG } from '../../platform/config.ts';
import { LOGGER } from '../../platform/tokens.ts';
import { ObserverList } from './observer-list.ts';
import type { SpanWriter } from './span-writer.ts';

/** How long to wait at shutdown until the last spans are sent. */
const FLUSH_DEADLINE_MS = 3_000;

type CallEnd = Parameters<NonNullable<SessionObserver['callEnded']>>[2];

/**
 * OpenTelemetry traces. Without an endpoint, the SDK is not even loaded. A session is one trace on all replicas, because its ids follow from the
 * SID. A call whose client sent `traceparent` is part of the client's trace, with a link to the session's trace. Spans have ids, names and codes,
 * never inputs or results.
 */
@Injectable()
export class SessionTraces implements OnModuleInit, OnApplicationShutdown {
  readonly #parents = new AsyncLocalStorage<string>();
  readonly #callParents = new Map<string, string>();
  readonly #startingSince = new Map<string, number>();
  #spans: SpanWriter | null = null;

  constructor(
    @Inject(CONFIG) private readonly config: Config,
    @Inject(LOGGER) private readonly logger: Logger,
    private readonly observers: ObserverList,
  ) {}

  async onModuleInit(): Promise<void> {
    const { otlpEndpoint } = this.config;
    if (otlpEndpoint === null) return;
    const { SpanWriter } = await import('./span-writer.ts');
    this.#spans = new SpanWriter(otlpEndpoint);
    this.observers.add({
      sessionChanged: (record, before) => this.#sessionChanged(record, before),
      callStarted: (call) => this.#callStarted(call),
      callEnded: (call, record, end) => this.#callEnded(call, record, end),
      restored: (record, { calls, tookMs, outcome }) =>
        this.#step(
          'replay',
          record,
          Date.now() - tookMs,
          { 'palestra.replay.calls': calls, 'palestra.outcome': outcome },
          outcome !== 'restored',
        ),
      admitted: (record, { waitedMs, outcome }) =>
        this.#step('wait for a slot', record, Date.now() - waitedMs, { 'palestra.outcome': outcome }, outcome === 'refused'),
    });
  }

  /** Keeps each request's `traceparent` for its calls. Call before routes are added. */
  readParents(fastify: FastifyInstance): void {
    if (this.config.otlpEndpoint === null) return;
    // After the body is read, because that leaves the async context of earlier hooks.
    fastify.addHook('preValidation', (request, _reply, done) => {
      const { traceparent } = request.headers;
      if (typeof traceparent === 'string') this.#parents.run(traceparent, done);
      else done();
    });
  }

  async onApplicationShutdown(): Promise<void> {
    await this.#spans
      ?.close(FLUSH_DEADLINE_MS)
      .catch((error: unknown) => this.logger.warn({ err: error }, 'the last traces did not reach the collector'));
  }

  #sessionChanged(record: SessionRecord, before: SessionRecord | null): void {
    const { sid, state } = record;
    if (state === 'starting') return void (before?.state !== 'starting' && this.#startingSince.set(sid, Date.now()));
    const since = this.#startingSince.get(sid);
    if (since !== undefined) {
      this.#startingSince.delete(sid);
      this.#step('setup', record, since, {}, state !== 'ready' && state !== 'finished' && state !== 'closed');
    }
    if (!isDead(state) || (before !== null && isDead(before.state))) return;
    const failed = record.failureClass !== null && record.failureClass !== 'ok';
    this.#spans?.session(sid, {
      name: `session ${record.environment ?? ''}`.trim(),
      startedAt: record.createdAt,
      attributes: attributesOf(record),
      failure: failed ? (record.failure?.code ?? state) : null,
    });
  }

  #callStarted(call: CallIntent): void {
    const parent = this.#parents.getStore();
    if (parent !== undefined) this.#callParents.set(call.taskId, parent);
  }

  #callEnded(call: CallIntent, record: SessionRecord, { outcome, failureClass, ranMs }: CallEnd): void {
    const traceparent = this.#callParents.get(call.taskId) ?? null;
    this.#callParents.delete(call.taskId);
    const code = outcome.type === 'refused' ? outcome.code : outcome.type === 'result' ? outcome.reason : outcome.type;
    this.#spans?.part(record.sid, {
      name: `execute_tool ${call.tool}`,
      startedAt: Date.now() - ranMs,
      traceparent,
      failure: failureClass === 'ok' ? null : (code ?? failureClass),
      attributes: {
        ...attributesOf(record),
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.name': call.tool,
        'gen_ai.tool.call.id': call.taskId,
        'palestra.task_id': call.taskId,
        'palestra.failure_class': failureClass,
      },
    });
  }

  #step(name: string, record: SessionRecord, startedAt: number, more: Attributes, failed: boolean): void {
    const failure = failed ? (record.failure?.code ?? record.state) : null;
    this.#spans?.part(record.sid, { name, startedAt, traceparent: null, failure, attributes: { ...attributesOf(record), ...more } });
  }
}

function attributesOf(record: SessionRecord): Attributes {
  return {
    'session.id': record.sid,
    'gen_ai.conversation.id': record.sid,
    'palestra.environment': record.environment ?? '',
    'palestra.org': record.orgId,
    'palestra.session.state': record.state,
    ...(record.failureClass === null ? {} : { 'palestra.failure_class': record.failureClass }),
  };
}
