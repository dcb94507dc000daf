import { isObject, type JsonObject } from '@palestra/protocol';
import { listOf, objectOf, textOf } from '../json-fields.ts';

/** A span of OTLP/JSON (opentelemetry-proto 1.x) with plain attribute values. Times in milliseconds since the epoch. */
export interface Span {
  traceId: string;
  spanId: string;
  parentId: string | null;
  name: string;
  startedAt: number;
  endedAt: number;
  attributes: JsonObject;
  resource: JsonObject;
  events: { name: string; at: number; attributes: JsonObject }[];
  /** The error of the span, if its status is an error. */
  error: string | null;
}

export interface ReadSpans {
  spans: Span[];
  /** Why spans could not be read; one entry per span. */
  problems: string[];
}

/** The request is not an `ExportTraceServiceRequest`. */
export class OtlpShapeError extends Error {}

const STATUS_ERROR = new Set<unknown>([2, 'STATUS_CODE_ERROR']);

/** Throws `OtlpShapeError`. Reports and skips bad spans. */
export function readSpans(request: unknown): ReadSpans {
  if (!isObject(request) || (request.resourceSpans !== undefined && !Array.isArray(request.resourceSpans))) {
    throw new OtlpShapeError('The body must be an ExportTraceServiceRequest: an object with a list "resourceSpans".');
  }
  const read: ReadSpans = { spans: [], problems: [] };
  for (const part of listOf(request.resourceSpans).map(objectOf)) {
    const resource = attributesOf(objectOf(part.resource).attributes);
    for (const span of listOf(part.scopeSpans).flatMap((scope) => listOf(objectOf(scope).spans))) {
      const one = readSpan(span, resource);
      if (typeof one === 'string') read.problems.push(one);
      else read.spans.push(one);
    }
  }
  return read;
}

function readSpan(span: unknown, resource: JsonObject): Span | string {
  if (!isObject(span)) return 'A span must be an object.';
  const traceId = hexOf(span.traceId, 32);
  const spanId = hexOf(span.spanId, 16);
  if (traceId === null) return 'traceId must be 32 hexadecimal digits, not all of them 0.';
  if (spanId === null) return 'spanId must be 16 hexadecimal digits, not all of them 0.';
  const startedAt = millisecondsOf(span.startTimeUnixNano);
  const endedAt = millisecondsOf(span.endTimeUnixNano) ?? startedAt;
  if (startedAt === null || endedAt === null) return `span ${spanId}: startTimeUnixNano must be nanoseconds since the epoch.`;
  const events = listOf(span.events)
    .filter(isObject)
    .map((event) => ({
      name: textOf(event.name) ?? '',
      at: millisecondsOf(event.timeUnixNano) ?? startedAt,
      attributes: attributesOf(event.attributes),
    }));
  const status = objectOf(span.status);
  const exception = events.find(({ name }) => name === 'exception')?.attributes['exception.message'];
  return {
    traceId,
    spanId,
    parentId: hexOf(span.parentSpanId, 16),
    name: textOf(span.name) ?? '',
    startedAt,
    endedAt: Math.max(endedAt, startedAt),
    attributes: attributesOf(span.attributes),
    resource,
    events,
    error: STATUS_ERROR.has(status.code) ? (textOf(status.message) ?? textOf(exception) ?? 'The span ended with an error.') : null,
  };
}

function hexOf(value: unknown, length: number): string | null {
  if (typeof value !== 'string' || value.length !== length || !/^[0-9a-f]+$/i.test(value) || /^0+$/.test(value)) return null;
  return value.toLowerCase();
}

/** OTLP/JSON writes 64-bit numbers as text; some exporters send numbers. null if absent or 0. */
function millisecondsOf(nanoseconds: unknown): number | null {
  const text = typeof nanoseconds === 'number' && Number.isFinite(nanoseconds) ? BigInt(Math.trunc(nanoseconds)).toString() : nanoseconds;
  if (typeof text !== 'string' || !/^\d{1,20}$/.test(text)) return null;
  const at = Number(BigInt(text) / 1_000_000n);
  return at > 0 && at <= 8.64e15 ? at : null;
}

function attributesOf(list: unknown): JsonObject {
  const attributes: [string, unknown][] = listOf(list)
    .filter(isObject)
    .flatMap(({ key, value }) => (typeof key === 'string' ? [[key, valueOf(value)] as [string, unknown]] : []));
  return Object.fromEntries(attributes);
}

/** Reads an AnyValue. Integers that are not safe stay decimal text. */
function valueOf(value: unknown): unknown {
  if (!isObject(value)) return null;
  if ('stringValue' in value) return value.stringValue;
  if ('boolValue' in value) return value.boolValue;
  if ('doubleValue' in value) return typeof value.doubleValue === 'string' ? Number(value.doubleValue) : value.doubleValue;
  if ('intValue' in value) {
    const int = Number(value.intValue);
    return Number.isSafeInteger(int) ? int : String(value.intValue);
  }
  if ('arrayValue' in value) return listOf(objectOf(value.arrayValue).values).map(valueOf);
  if ('kvlistValue' in value) return attributesOf(objectOf(value.kvlistValue).values);
  return 'bytesValue' in value ? value.bytesValue : null;
}
