import { once } from 'node:events';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { freePort } from '@palestra/hosting';
import { spawnPython } from './fork-server.ts';
import { pythonFolder, run } from './python.ts';

/** Interpreters with one generation each of the official MCP package. */
export type McpPython = 'PALESTRA_PYTHON_MCP1' | 'PALESTRA_PYTHON_MCP2';

/** Throws when it is missing: a proof that could not run is a failure, never a skip. */
export function mcpPython(name: McpPython): string {
  const file = process.env[name];
  if (!file || !existsSync(file)) throw new Error(`${name} must name a Python interpreter; it is ${file ?? 'not set'}`);
  return file;
}

/** What the official client saw of an environment. */
export async function playMcp(name: McpPython, url: string, key: string): Promise<any> {
  const finished = await run(mcpPython(name), [path.join(pythonFolder, 'mcp_player.py'), url, key]);
  if (finished.code !== 0) throw new Error(`mcp_player.py (${name}) ended with ${finished.code}:\n${finished.output}`);
  return JSON.parse(finished.stdout.trimEnd().split('\n').at(-1)!);
}

export interface McpCounter {
  url: string;
  stop(): Promise<void>;
}

/** `mcp_counter.py` at a URL. */
export async function startCounter(name: McpPython, kind: 'streamable-http' | 'sse'): Promise<McpCounter> {
  const port = await freePort();
  const args = [path.join(pythonFolder, 'mcp_counter.py'), kind, String(port)];
  const child = spawnPython(mcpPython(name), args, { cwd: pythonFolder, env: {} });
  let output = '';
  child.stderr!.on('data', (data: Buffer) => (output += data.toString()));
  const url = `http://127.0.0.1:${port}`;
  for (const deadline = Date.now() + 100_000; Date.now() < deadline;) {
    if (child.exitCode !== null) break;
    // Whatever it answers: it listens.
    const answer = await fetch(url, { signal: AbortSignal.timeout(5_000) }).catch(() => null);
    if (answer !== null) {
      const stop = async () => {
        if (child.exitCode !== null || child.signalCode !== null) return;
        const ended = once(child, 'exit');
        child.kill('SIGKILL');
        await ended;
      };
      return { url: `${url}/${kind === 'sse' ? 'sse' : 'mcp'}`, stop };
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  child.kill('SIGKILL');
  throw new Error(`mcp_counter.py (${name}, ${kind}) did not start:\n${output}`);
}
