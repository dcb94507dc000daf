import type { ErrorCode } from '@palestra/protocol';
import { z } from 'zod';
import type { DocumentedRoute } from '../../platform/http/openapi.ts';
import { rpcAnswerSchema, rpcErrorSchema, rpcMessageSchema, rpcRequestSchema } from '../http/json-rpc.schema.ts';

/** The MCP routes of the OpenAPI document. libs/mcp checks the bodies, with JSON-RPC errors. */
const headers = z.object({
  'mcp-session-id': z.string().optional().describe('The session, in all requests but `initialize`.'),
  'mcp-protocol-version': z.string().optional(),
});
const taskQuery = z.object({ split: z.string().optional(), index: z.string().optional(), variant: z.string().optional() });
/** Errors of the transport of the official package have no code of the catalogue. */
const NOT_ACCEPTABLE = { 406: 'The header Accept lacks a type that the answer may have.' };
const NOT_JSON = { 415: 'The header Content-Type is not application/json.' };

const LOOKUP: ErrorCode[] = ['deployment_not_found', 'environment_starting', 'backend_unreachable', 'backend_timeout', 'backend_invalid'];
const PLAY: ErrorCode[] = [...LOOKUP, 'invalid_split', 'invalid_index', 'capacity_exhausted', 'session_lost', 'environment_failed'];

const LOST: ErrorCode[] = ['session_not_found', 'session_moved'];
/** Clients initialize again after 404. */
const ENDED: Record<number, ErrorCode[]> = {
  404: ['session_deleted', 'session_expired', 'session_lost', 'session_diverged', 'setup_failed'],
};

const MCP: [method: string, summary: string, description?: Partial<DocumentedRoute['description']>][] = [
  [
    'POST',
    'MCP over streamable HTTP: `initialize` opens a session whose id is `Mcp-Session-Id`; query: `split`, `index`',
    {
      body: rpcRequestSchema,
      query: taskQuery,
      headers,
      response: rpcAnswerSchema,
      stream: { message: rpcMessageSchema },
      accepted: 'The message was a notification or a response.',
      rpc: { error: rpcErrorSchema, more: { ...NOT_ACCEPTABLE, ...NOT_JSON } },
      errors: [...PLAY, ...LOST, 'unknown_variant', 'secrets_invalid'],
      errorsAs: ENDED,
    },
  ],
  [
    'GET',
    'Listen to an MCP session, or resume the stream of a call by `Last-Event-ID`',
    {
      headers: headers.extend({ 'last-event-id': z.string().optional() }),
      stream: { message: rpcMessageSchema },
      rpc: { error: rpcErrorSchema, more: NOT_ACCEPTABLE },
      errors: [...LOST, 'limit_reached'],
      errorsAs: ENDED,
    },
  ],
  [
    'DELETE',
    'End an MCP session',
    { headers, empty: true, rpc: { error: rpcErrorSchema, more: {} }, errors: [...LOST, 'session_id_required'], errorsAs: ENDED },
  ],
];

export const mcpDocumentation: readonly DocumentedRoute[] = MCP.map(([method, summary, description]) => ({
  method,
  path: '/mcp/:owner/:name',
  public: false,
  tag: 'MCP',
  description: { summary, ...description },
}));
