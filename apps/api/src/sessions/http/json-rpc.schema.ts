import { z } from 'zod';

/** JSON-RPC 2.0 in the OpenAPI document. libs/mcp and libs/openenv check the messages. */

const anyObject = z.record(z.string(), z.unknown());
/** null: the request could not be read. */
const id = z.union([z.string(), z.number()]).nullable();

export const rpcRequestSchema = z.object({
  jsonrpc: z.literal('2.0'),
  method: z.string(),
  params: anyObject.optional(),
  id: z.unknown().optional(),
});
export const rpcErrorSchema = z.object({
  jsonrpc: z.literal('2.0'),
  id,
  error: z.object({
    code: z.int(),
    message: z.string(),
    data: z.unknown().optional().describe('Of an error of the catalogue: `code`, `status`, `retryable`, `retry_after_seconds`.'),
  }),
});
export const rpcAnswerSchema = z.union([z.object({ jsonrpc: z.literal('2.0'), id, result: z.unknown() }), rpcErrorSchema]);
/** What a server sends in an event stream: answers, requests and notifications. */
export const rpcMessageSchema = z.union([rpcAnswerSchema, rpcRequestSchema]);
