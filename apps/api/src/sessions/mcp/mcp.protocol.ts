import type { Protocol } from '../http/protocol.ts';
import { mcpDocumentation } from './mcp.openapi.ts';
import { mcpPlugin } from './mcp.routes.ts';

/** Each environment as an MCP server (docs/mcp.md). */
export const mcpProtocol: Protocol = { mount: mcpPlugin, documentation: mcpDocumentation };
