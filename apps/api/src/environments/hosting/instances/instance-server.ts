import { McpBackend } from '@palestra/mcp/client';
import { OpenEnvBackend } from '@palestra/openenv/client';
import { OrsBackend } from '@palestra/ors/client';
import { OutboundPolicy } from '@palestra/outbound';
import type { Backend } from '@palestra/session';
import type { ServerKind } from '@palestra/hosting';

/** How the server of an instance is reached. */
export interface ServerOptions {
  /** Sent to ORS servers: `owner/name`. */
  deployment: string;
  /** Read again for each request. */
  silenceMs: () => number;
  /** For a server that its author runs at a URL; null for an instance, whose address is only allowed for itself. */
  remote: OutboundPolicy | null;
}

/** A backend for the server at one address. The caller closes it. */
export function openServer(protocol: ServerKind, url: string, { deployment, silenceMs, remote }: ServerOptions): Backend {
  const outbound = remote ?? OutboundPolicy.only(url);
  if (protocol === 'openenv') return new OpenEnvBackend({ url, outbound });
  // An instance serves MCP at this path; a URL is that of the endpoint itself.
  if (protocol === 'mcp') return new McpBackend({ url: remote === null ? new URL('mcp', `${url}/`).href : url, outbound });
  return new OrsBackend({ url, outbound, silenceMs, deployment });
}
