import { z } from 'zod';
import { socketErrorSchema } from './socket-error.schema.ts';

/** Frames of the socket of text sessions, `/v1/text-sessions/ws` (docs/text.md). A frame is one JSON object. */

/** Sent by the client. The other fields are the body of the same operation over HTTP: `openTextSchema`, `textStepSchema`. */
export const textClientFrameSchema = z.looseObject({
  id: z.union([z.string(), z.int()], { error: 'a request has an id, a string or an integer' }),
  op: z.enum(['init', 'step', 'metrics', 'close']),
  session: z.string().optional(),
});
export type TextClientFrame = z.infer<typeof textClientFrameSchema>;

const id = z.union([z.string(), z.number()]).nullable().describe('`id` of the request; null when it had none.');

/** Sent by the server, one for each request. */
export const textServerFrameSchema = z.discriminatedUnion('ok', [
  z.object({ id, ok: z.literal(true), result: z.unknown().describe('The answer of the same operation over HTTP.') }),
  z.object({ id, ok: z.literal(false), error: socketErrorSchema }),
]);
export type TextServerFrame = z.infer<typeof textServerFrameSchema>;
