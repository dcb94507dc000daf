import { z } from 'zod';
import { sessionCallSchema, sessionViewSchema } from '../session.schema.ts';
import { socketErrorSchema } from './socket-error.schema.ts';

/** Frames of the socket of a session, `/v1/sessions/{sid}/socket` (docs/sessions.md). A frame is one JSON object. */

/** Sent by the client. `id` is chosen by the client and names the call for good; `ping` is answered by `pong`. */
export const sessionClientFrameSchema = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('call'), id: z.string(), tool: z.string(), input: z.record(z.string(), z.unknown()) }),
  z.looseObject({ type: z.literal('ping') }),
]);
export type SessionClientFrame = z.infer<typeof sessionClientFrameSchema>;

const id = z.string().describe('`id` of the client’s frame.');
const task_id = z.string();
const event = z.string().describe('Position of the event. A socket opened with `?after={event}` continues behind it.');

/** Sent by the server. */
export const sessionServerFrameSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('accepted'), id, task_id }).describe('The call is in the ledger. It runs, or ran before.'),
  z.object({ type: z.literal('result'), id, task_id, result: z.unknown().describe('What `POST /call` streams as `end`.') }),
  socketErrorSchema
    .extend({ type: z.literal('error'), id: id.nullable(), task_id: task_id.optional() })
    .describe('With `task_id`: the call ended with this error, and a repeat gets the same. Without: nothing ran for the frame.'),
  z.object({ type: z.literal('session'), event, session: sessionViewSchema }).describe('The session or one of its calls changed.'),
  z
    .object({ type: z.literal('call'), event, call: sessionCallSchema })
    .describe('A call of any client started or ended. A resumed socket may repeat it with its current state.'),
  z.object({ type: z.literal('end'), event, session: sessionViewSchema }).describe('The session ended. No event follows.'),
  z.object({ type: z.literal('pong') }),
]);
export type SessionServerFrame = z.infer<typeof sessionServerFrameSchema>;
