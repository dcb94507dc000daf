import { z } from 'zod';

/** An error in a frame of a socket: the fields of an HTTP error answer. */
export const socketErrorSchema = z.object({
  status: z.number().describe('The HTTP status that the same request would get.'),
  code: z.string().describe('Code of the error catalogue.'),
  message: z.string(),
  detail: z.unknown(),
  retry_after: z.number().optional().describe('Seconds after which the request may be sent again.'),
});
export type SocketError = z.infer<typeof socketErrorSchema>;
