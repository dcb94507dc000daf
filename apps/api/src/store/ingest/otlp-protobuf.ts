import protobuf from 'protobufjs/light.js';

/**
 * The fields of `ExportTraceServiceRequest` and `ExportTraceServiceResponse` (opentelemetry-proto 1.x) that a rollout needs. protobuf skips
 * unknown fields by their wire type.
 */
const { Root } = protobuf;
const field = (id: number, type: string, rule?: 'repeated') => ({ id, type, ...(rule ? { rule } : {}) });

const root = Root.fromJSON({
  nested: {
    ExportTraceServiceRequest: { fields: { resourceSpans: field(1, 'ResourceSpans', 'repeated') } },
    ResourceSpans: { fields: { resource: field(1, 'Resource'), scopeSpans: field(2, 'ScopeSpans', 'repeated') } },
    Resource: { fields: { attributes: field(1, 'KeyValue', 'repeated') } },
    ScopeSpans: { fields: { spans: field(2, 'Span', 'repeated') } },
    Span: {
      fields: {
        traceId: field(1, 'bytes'),
        spanId: field(2, 'bytes'),
        parentSpanId: field(4, 'bytes'),
        name: field(5, 'string'),
        startTimeUnixNano: field(7, 'fixed64'),
        endTimeUnixNano: field(8, 'fixed64'),
        attributes: field(9, 'KeyValue', 'repeated'),
        events: field(11, 'Event', 'repeated'),
        status: field(15, 'Status'),
      },
    },
    Event: { fields: { timeUnixNano: field(1, 'fixed64'), name: field(2, 'string'), attributes: field(3, 'KeyValue', 'repeated') } },
    Status: { fields: { message: field(2, 'string'), code: field(3, 'int32') } },
    KeyValue: { fields: { key: field(1, 'string'), value: field(2, 'AnyValue') } },
    AnyValue: {
      oneofs: {
        value: { oneof: ['stringValue', 'boolValue', 'intValue', 'doubleValue', 'arrayValue', 'kvlistValue', 'bytesValue'] },
      },
      fields: {
        stringValue: field(1, 'string'),
        boolValue: field(2, 'bool'),
        intValue: field(3, 'int64'),
        doubleValue: field(4, 'double'),
        arrayValue: field(5, 'ArrayValue'),
        kvlistValue: field(6, 'KeyValueList'),
        bytesValue: field(7, 'bytes'),
      },
    },
    ArrayValue: { fields: { values: field(1, 'AnyValue', 'repeated') } },
    KeyValueList: { fields: { values: field(1, 'KeyValue', 'repeated') } },
    ExportTraceServiceResponse: { fields: { partialSuccess: field(1, 'ExportTracePartialSuccess') } },
    ExportTracePartialSuccess: { fields: { rejectedSpans: field(1, 'int64'), errorMessage: field(2, 'string') } },
  },
});
const request = root.lookupType('ExportTraceServiceRequest');
const response = root.lookupType('ExportTraceServiceResponse');

/** Limits of a request: messages (each takes some hundred bytes of memory) and their depth. */
const MAX_MESSAGES = 400_000;
const MAX_DEPTH = 100;

/** Throws an Error for a request with more or deeper messages than can be decoded safely. */
function assertBounded(body: Uint8Array): void {
  const reader = protobuf.Reader.create(body);
  let messages = 0;
  const walk = (type: protobuf.Type, end: number, depth: number) => {
    if (depth > MAX_DEPTH) throw new Error(`it is nested deeper than ${MAX_DEPTH} levels`);
    while (reader.pos < end) {
      const tag = reader.uint32();
      const { resolvedType } = type.fieldsById[tag >>> 3]?.resolve() ?? {};
      if ((tag & 7) !== 2 || !(resolvedType instanceof protobuf.Type)) {
        reader.skipType(tag & 7);
        continue;
      }
      if ((messages += 1) > MAX_MESSAGES) throw new Error(`it has more than ${MAX_MESSAGES} messages`);
      walk(resolvedType, reader.uint32() + reader.pos, depth + 1);
    }
  };
  walk(request, body.length, 0);
}

/** Decodes into the form of OTLP/JSON: ids in hex, 64-bit numbers as text. Throws an Error for an invalid message. */
export function decodeTraceRequest(body: Uint8Array): unknown {
  assertBounded(body);
  const plain = request.toObject(request.decode(body), { longs: String, bytes: Buffer, arrays: false });
  for (const { scopeSpans } of (plain.resourceSpans ?? []) as { scopeSpans?: { spans?: Record<string, unknown>[] }[] }[]) {
    for (const span of (scopeSpans ?? []).flatMap(({ spans }) => spans ?? [])) {
      for (const key of ['traceId', 'spanId', 'parentSpanId'])
        if (span[key] instanceof Uint8Array) span[key] = Buffer.from(span[key]).toString('hex');
    }
  }
  return plain;
}

export function encodeTraceResponse(answer: { partialSuccess?: { rejectedSpans: string; errorMessage: string } }): Buffer {
  return Buffer.from(response.encode(response.fromObject(answer)).finish());
}
