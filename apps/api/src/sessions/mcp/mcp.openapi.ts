import type { ErrorCode } from '@palestra/protocol';
import { z } from 'zod';
import type { DocumentedRoute } from '../../platform/http/openapi.ts';

/** The MCP routes of the OpenAPI document. libs/mcp checks the bodies, with JSON-RPC errors. */
const anyObject = z.record(z.string(), z.unknown());
const rpc = z.object({ jsonrpc: z.literal('2.0'), method: z.string(), params: anyObject.optional(), id: z.unknown().optional() });

const LOOKUP: ErrorCode[] = ['deployment_not_found', 'environment_starting', 'backend_unreachable', 'backend_timeout', 'backend_invalid'];
const PLAY: ErrorCode[] = [...LOOKUP, 'invalid_split', 'invalid_index', 'capacity_exhausted', 'session_lost', 'environment_failed'];

const MCP: [method: string, summary: string, description?: Partial<DocumentedRoute['description']>][] = [
  [
    'POST',
    'MCP over streamable HTTP: `initialize` opens a session whose id is `Mcp-Session-Id`; query: `split`, `index`',
    { body: rpc, errors: PLAY },
  ],
  ['GET', 'Listen to an MCP session', { stream: 'JSON-RPC messages of the server', errors: ['session_not_found'] }],
  ['DELETE', 'End an MCP session', { errors: ['session_not_found'] }],
];

export const mcpDocumentation: readonly DocumentedRoute[] = MCP.map(([method, summary, description]) => ({
  method,
  path: '/mcp/:owner/:name',
  public: false,
  tag: 'MCP',
  description: { summary, ...description },
}));
