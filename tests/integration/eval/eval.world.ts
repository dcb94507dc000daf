import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import type { SharedPalestra } from '../../support/palestra.ts';

const CLI = path.resolve(import.meta.dirname, '../../../apps/cli/dist/main.js');
/** The key of the model, which must appear nowhere. */
export const MODEL_KEY = 'sk-secret-of-the-model-4711';

export interface ChatBody {
  model: string;
  messages: { role: string; content: unknown; tool_calls?: unknown[]; tool_call_id?: string }[];
  tools?: { function: { name: string; parameters: unknown } }[];
  [field: string]: unknown;
}

export interface ChatCall {
  body: ChatBody;
  authorization: string | undefined;
  /** The task that the prompt names. */
  task: number;
  /** Requests for this task until now, with this one. */
  visit: number;
}

type Answer = (response: http.ServerResponse) => void;
export type ChatScript = (call: ChatCall) => Answer | Promise<Answer>;

/** A server of chat completions on loopback that answers by a script. */
export async function serveChat(
  first: ChatScript,
): Promise<{ url: string; calls: ChatCall[]; use(script: ChatScript): void; close(): void }> {
  const calls: ChatCall[] = [];
  const visits = new Map<number, number>();
  let script = first;
  const server = http.createServer((request, response) => {
    void (async () => {
      const sent = await text(request).catch(() => null);
      // The client has ended in the middle of its request.
      if (sent === null) return;
      const body = JSON.parse(sent) as ChatBody;
      const task = Number(/Task (\d+)/.exec(JSON.stringify(body.messages))?.[1] ?? -1);
      visits.set(task, (visits.get(task) ?? 0) + 1);
      const call = { body, authorization: request.headers.authorization, task, visit: visits.get(task)! };
      calls.push(call);
      (await script(call))(response);
    })();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    calls,
    use(next) {
      script = next;
      calls.length = 0;
      visits.clear();
    },
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

const send =
  (status: number, body: unknown, headers: Record<string, string> = {}): Answer =>
  (response) =>
    response
      .writeHead(status, { 'content-type': 'application/json', ...headers })
      .end(typeof body === 'string' ? body : JSON.stringify(body));

export const refuse = send;
/** A completion with calls; `[name, arguments as text]`. */
export const callTools = (...calls: [name: string, text: string][]): Answer =>
  complete({
    content: null,
    tool_calls: calls.map(([name, given], at) => ({ id: `c${at}`, type: 'function', function: { name, arguments: given } })),
  });
export const say = (content: string, reason = 'stop'): Answer => complete({ content }, reason);
export const complete = (message: object, reason = 'stop'): Answer =>
  send(200, {
    choices: [{ message: { role: 'assistant', ...message }, finish_reason: reason }],
    usage: { prompt_tokens: 100, completion_tokens: 10 },
  });
export const solve: ChatScript = ({ task }) => callTools(['answer', JSON.stringify({ sum: task + 1 })]);

export interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

const environment = (server: SharedPalestra) => ({
  ...process.env,
  PALESTRA_URL: server.url,
  PALESTRA_API_KEY: server.apiKey,
  OPENAI_API_KEY: MODEL_KEY,
  OPENAI_BASE_URL: '',
});

/** Runs `palestra` as it is built. */
export const palestra = (server: SharedPalestra, ...args: string[]): Promise<Ended> =>
  promisify(execFile)(process.execPath, [CLI, ...args], { env: environment(server), maxBuffer: 1e8 }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    (error: Ended) => error,
  );

/** The same, to end it by a signal. `ended` has its exit code, or the signal. */
export function startPalestraCommand(
  server: SharedPalestra,
  ...args: string[]
): { child: ChildProcess; ended: Promise<{ code: number | null; stderr: string }> } {
  const child = spawn(process.execPath, [CLI, ...args], { env: environment(server), stdio: ['ignore', 'ignore', 'pipe'] });
  const stderr = text(child.stderr);
  return { child, ended: once(child, 'exit').then(async ([code]) => ({ code: code as number | null, stderr: await stderr })) };
}

export async function get(server: SharedPalestra, route: string): Promise<any> {
  const answer = await fetch(server.url + route, { headers: { 'x-api-key': server.apiKey } });
  return answer.json();
}

export interface StoredRollout {
  id: string;
  task_index: number;
  sample: number;
  reward: number | null;
  stop: string;
  failure_class: string | null;
  verified: string | null;
  step: number;
  phase: string;
  tokens: number;
  provenance: Record<string, string>;
}

/** All rollouts of a run when its figures are complete. */
export async function rolloutsOf(server: SharedPalestra, run: string): Promise<StoredRollout[]> {
  for (;;) {
    const view = await get(server, `/v1/runs/${encodeURIComponent(run)}`);
    if (view.pending === null) break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return (await get(server, `/v1/runs/${encodeURIComponent(run)}/rollouts?limit=500`)).rollouts as StoredRollout[];
}
