import { z } from 'zod';

/** OpenTelemetry defines the content: opentelemetry-proto, `ExportTraceServiceRequest`. */
export const traceRequestSchema = z.looseObject({
  resourceSpans: z.array(z.looseObject({})).optional().describe('Resource, scope and span lists as OTLP/JSON has them.'),
});

export const traceReceiptSchema = z.object({
  partialSuccess: z
    .object({ rejectedSpans: z.string().describe('A 64-bit number as text, as in all OTLP/JSON.'), errorMessage: z.string() })
    .optional()
    .describe('Rejected spans with the reason, or a warning with 0 rejected spans. Absent if everything was stored.'),
});
