import { splitCredentials } from './validate-url.ts';

export type ServerKind = 'remote' | 'openenv' | 'mcp';

const TIMEOUT_MS = 10_000;
const INITIALIZE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'palestra', version: '0.1.0' } },
};

interface Asked {
  status: number;
  type: string;
  text: string;
  /** Of an MCP session that the question began. */
  mcpSession: string | null;
}

/**
 * What the server at a URL speaks, by asking it. OpenEnv first: from its Task API on it lists environments as an ORS server does. null when it
 * answers like none of them; rejects when nobody answers.
 */
export async function detectServer(base: string): Promise<ServerKind | null> {
  const [schema, openapi, list] = await Promise.all([ask(`${base}/schema`), ask(`${base}/openapi.json`), ask(`${base}/list_environments`)]);
  if (isOpenEnv(jsonOf(schema), jsonOf(openapi))) return 'openenv';
  const environments = jsonOf(list);
  if (Array.isArray(environments) && environments.length > 0 && environments.every((name) => typeof name === 'string')) return 'remote';
  const mcp = await ask(base, { method: 'POST', body: JSON.stringify(INITIALIZE) });
  if (mcp.status < 300 && mcp.text.includes('"jsonrpc"')) {
    if (mcp.mcpSession !== null) await ask(base, { method: 'DELETE' }, { 'mcp-session-id': mcp.mcpSession }).catch(() => {});
    return 'mcp';
  }
  // The older transport: a stream that is opened by GET.
  const stream = await ask(base, {});
  return stream.status < 300 && stream.type.includes('text/event-stream') ? 'mcp' : null;
}

/** Its schemas; or, in its first generation, the three routes over HTTP. */
function isOpenEnv(schema: unknown, openapi: unknown): boolean {
  const has = (value: unknown, keys: string[]) =>
    typeof value === 'object' && value !== null && keys.every((key) => Object.hasOwn(value, key));
  if (has(schema, ['action', 'observation'])) return true;
  return has((openapi as { paths?: unknown } | null)?.paths, ['/reset', '/step', '/state']);
}

async function ask(url: string, init: RequestInit = {}, more: Record<string, string> = {}): Promise<Asked> {
  const { url: bare, headers } = splitCredentials(url);
  const accept = { accept: 'application/json, text/event-stream', ...(init.body ? { 'content-type': 'application/json' } : {}) };
  const answer = await fetch(bare, { ...init, headers: { ...headers, ...accept, ...more }, signal: AbortSignal.timeout(TIMEOUT_MS) });
  const type = answer.headers.get('content-type') ?? '';
  const mcpSession = answer.headers.get('mcp-session-id');
  return { status: answer.status, type, mcpSession, text: type.includes('event-stream') ? await firstPiece(answer) : await answer.text() };
}

/** An event stream does not end by itself. */
async function firstPiece(answer: Response): Promise<string> {
  const reader = answer.body?.getReader();
  if (reader === undefined) return '';
  try {
    const { value } = await reader.read();
    return value === undefined ? '' : new TextDecoder().decode(value);
  } finally {
    await reader.cancel().catch(() => {});
  }
}

function jsonOf({ status, text }: Asked): unknown {
  if (status !== 200) return null;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null;
  }
}
