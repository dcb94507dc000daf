import { abortable, readBoundedText, splitCredentials } from '@palestra/kit';
import { VERSION } from '@palestra/protocol/version';

export type ServerKind = 'remote' | 'openenv' | 'mcp';

/** Schemas of a server can be long. */
export const MAX_ANSWER_BYTES = 16_000_000;
const TIMEOUT_MS = 10_000;
const INITIALIZE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'palestra', version: VERSION } },
};

interface ProbeResponse {
  status: number;
  type: string;
  text: string;
  /** The id of the MCP session that the request began. */
  mcpSession: string | null;
}

type Fetch = typeof globalThis.fetch;

/**
 * Detects the protocol of a server from its responses. OpenEnv is checked first, because since its Task API it lists environments like an ORS
 * server. Returns null for an unknown protocol; rejects if the server does not respond. `fetch`: one that reaches only allowed addresses, for
 * servers of other people.
 */
export async function detectServer(base: string, signal: AbortSignal, fetch: Fetch = globalThis.fetch): Promise<ServerKind | null> {
  const send = (url: string, init: RequestInit = {}) => request(fetch, url, signal, init);
  const [schema, openapi, list] = await Promise.all([
    send(`${base}/schema`),
    send(`${base}/openapi.json`),
    send(`${base}/list_environments`),
  ]);
  if (isOpenEnv(jsonOf(schema), jsonOf(openapi))) return 'openenv';
  const environments = jsonOf(list);
  if (Array.isArray(environments) && environments.length > 0 && environments.every((name) => typeof name === 'string')) return 'remote';
  const mcp = await send(base, { method: 'POST', body: JSON.stringify(INITIALIZE) });
  if (mcp.status < 300 && mcp.text.includes('"jsonrpc"')) {
    if (mcp.mcpSession !== null) await send(base, { method: 'DELETE', headers: { 'mcp-session-id': mcp.mcpSession } }).catch(() => {});
    return 'mcp';
  }
  // The older MCP transport opens a stream with GET.
  const stream = await send(base);
  return stream.status < 300 && stream.type.includes('text/event-stream') ? 'mcp' : null;
}

/** By its schemas, or in the first generation by its three HTTP routes. */
function isOpenEnv(schema: unknown, openapi: unknown): boolean {
  const has = (value: unknown, keys: string[]) =>
    typeof value === 'object' && value !== null && keys.every((key) => Object.hasOwn(value, key));
  if (has(schema, ['action', 'observation'])) return true;
  return has((openapi as { paths?: unknown } | null)?.paths, ['/reset', '/step', '/state']);
}

async function request(fetch: Fetch, url: string, signal: AbortSignal, init: RequestInit): Promise<ProbeResponse> {
  const { url: bare, headers } = splitCredentials(url);
  const accept = { accept: 'application/json, text/event-stream', ...(init.body ? { 'content-type': 'application/json' } : {}) };
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
  const all = { ...headers, ...accept, ...(init.headers as Record<string, string>) };
  // `fetch` of Node.js 20 may ignore its signal when the connection has ended.
  return abortable(fetch(bare, { ...init, headers: all, signal: deadline }).then(readResponse), deadline);
}

async function readResponse(answer: Response): Promise<ProbeResponse> {
  const type = answer.headers.get('content-type') ?? '';
  const mcpSession = answer.headers.get('mcp-session-id');
  const text = type.includes('event-stream') ? await firstChunk(answer) : await readBoundedText(answer.body, MAX_ANSWER_BYTES);
  return { status: answer.status, type, mcpSession, text };
}

/** Reads only the first chunk, because an event stream stays open. */
async function firstChunk(answer: Response): Promise<string> {
  const reader = answer.body?.getReader();
  if (reader === undefined) return '';
  try {
    const { value } = await reader.read();
    return value === undefined ? '' : new TextDecoder().decode(value);
  } finally {
    await reader.cancel().catch(() => {});
  }
}

function jsonOf({ status, text }: ProbeResponse): unknown {
  if (status !== 200) return null;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null;
  }
}
