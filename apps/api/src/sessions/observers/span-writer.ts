import { createHash } from 'node:crypto';
import {
  type Attributes,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Tracer,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BasicTracerProvider, BatchSpanProcessor, type IdGenerator, RandomIdGenerator } from '@opentelemetry/sdk-trace-base';

export interface FinishedSpan {
  name: string;
  /** Milliseconds since the epoch. The span ends now. */
  startedAt: number;
  attributes: Attributes;
  /** `error.type`; null for success. */
  failure: string | null;
}

/** Generates the fixed ids of a session's span, and random ids for all others. */
class SessionIds implements IdGenerator {
  readonly #random = new RandomIdGenerator();
  next: SpanContext | null = null;

  generateTraceId(): string {
    return this.next?.traceId ?? this.#random.generateTraceId();
  }

  generateSpanId(): string {
    return this.next?.spanId ?? this.#random.generateSpanId();
  }
}

/** Writes finished spans to an OTLP/HTTP collector, in batches, in the background. Drops spans that do not fit into its buffer. */
export class SpanWriter {
  readonly #ids = new SessionIds();
  readonly #provider: BasicTracerProvider;
  readonly #tracer: Tracer;

  /** `endpoint`: base URL, as in OTEL_EXPORTER_OTLP_ENDPOINT. */
  constructor(endpoint: string) {
    const exporter = new OTLPTraceExporter({ url: `${endpoint.replace(/\/+$/, '')}/v1/traces` });
    this.#provider = new BasicTracerProvider({
      resource: resourceFromAttributes({ 'service.name': process.env['OTEL_SERVICE_NAME'] ?? 'palestra' }),
      idGenerator: this.#ids,
      spanProcessors: [new BatchSpanProcessor(exporter)],
    });
    this.#tracer = this.#provider.getTracer('palestra');
  }

  /** Writes the span of a whole session. The replica that ended the session calls this once. */
  session(sid: string, span: FinishedSpan): void {
    this.#ids.next = contextOf(sid);
    try {
      this.#write(span, null, null);
    } finally {
      this.#ids.next = null;
    }
  }

  /** Writes the span of a part of a session, in the client's trace if it has one. */
  part(sid: string, span: FinishedSpan & { traceparent: string | null }): void {
    const session = contextOf(sid);
    const client = span.traceparent === null ? null : readTraceparent(span.traceparent);
    this.#write(span, client ?? session, client === null ? null : session);
  }

  #write({ name, startedAt, attributes, failure }: FinishedSpan, parent: SpanContext | null, link: SpanContext | null): void {
    const context = parent === null ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent);
    const links = link === null ? [] : [{ context: link }];
    const span = this.#tracer.startSpan(name, { kind: SpanKind.SERVER, startTime: startedAt, attributes, links }, context);
    if (failure !== null) span.setAttribute('error.type', failure).setStatus({ code: SpanStatusCode.ERROR, message: failure });
    span.end();
  }

  async close(deadlineMs: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise((_resolve, reject) => {
      timer = setTimeout(() => reject(new Error(`no answer within ${deadlineMs} ms`)), deadlineMs);
    });
    await Promise.race([this.#provider.shutdown(), late]).finally(() => clearTimeout(timer));
  }
}

/** The ids follow from the SID, so that all replicas write one trace. */
function contextOf(sid: string): SpanContext {
  const hash = createHash('sha256').update(sid).digest('hex');
  const plain = sid.replaceAll('-', '').toLowerCase();
  const traceId = /^[0-9a-f]{32}$/.test(plain) && !/^0+$/.test(plain) ? plain : hash.slice(0, 32);
  return { traceId, spanId: hash.slice(32, 48), traceFlags: TraceFlags.SAMPLED };
}

/** Parses W3C trace context. null if it is not valid or the client does not sample it. */
function readTraceparent(header: string): SpanContext | null {
  const [, traceId, spanId, flags] = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})/.exec(header) ?? [];
  if (traceId === undefined || spanId === undefined || /^0+$/.test(traceId) || /^0+$/.test(spanId)) return null;
  if ((Number.parseInt(flags!, 16) & TraceFlags.SAMPLED) === 0) return null;
  return { traceId, spanId, traceFlags: TraceFlags.SAMPLED, isRemote: true };
}
