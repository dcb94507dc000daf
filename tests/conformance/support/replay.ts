import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { recording } from './python.ts';

/** One recorded exchange; the format is described beside the recordings. */
export interface Exchange {
  seq: number;
  method: string;
  path: string;
  headers: Record<string, string>;
  body: string;
  status: number;
  response: string;
  stub?: boolean;
}

export function readRecording(name: string): Exchange[] {
  return readFileSync(recording(name), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Exchange);
}

export interface Answer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
}

/** What an event stream says once the borders of its chunks are forgotten. */
export interface Folded {
  taskId: string | null;
  kind: 'end' | 'error' | 'cut';
  /** parsed JSON for `end` (null when empty), text for `error` */
  value: unknown;
  /** the client's reading: leading whitespace of every data line is lost, as the SDK does it */
  clientText: string;
}

/** The characters that the SDK strips from the front of a data value; JavaScript's \s is not the same set. */
const leadingWhitespace = /^[\u0009-\u000d\u001c-\u0020\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/;

export function fold(stream: string): Folded {
  const folded: Folded = { taskId: null, kind: 'cut', value: null, clientText: '' };
  let text = '';
  for (const block of stream.split('\r\n\r\n')) {
    let event = '';
    const data: string[] = [];
    for (const line of block.split('\r\n')) {
      if (line.startsWith('event:')) event = line.slice('event:'.length).trim();
      if (line.startsWith('data:')) data.push(line.slice('data:'.length));
    }
    const value = data.map((line) => line.replace(/^ /, '')).join('\n');
    if (event === 'task_id') folded.taskId = value;
    if (event === 'chunk' || event === 'end') {
      text += value;
      folded.clientText += data.map((line) => line.replace(leadingWhitespace, '')).join('\n');
    }
    if (event === 'end') {
      folded.kind = 'end';
      folded.value = text === '' ? null : JSON.parse(text);
    }
    if (event === 'error') {
      folded.kind = 'error';
      folded.value = value;
    }
  }
  return folded;
}

/** Sends the raw request line: `//ping` and percent-encoded bytes must arrive as they were recorded. */
export async function send(origin: string, exchange: Exchange, rename: (text: string) => string): Promise<Answer> {
  const body = rename(exchange.body);
  const headers = Object.fromEntries(
    Object.entries({ ...exchange.headers, 'content-length': String(Buffer.byteLength(body)) }).map(([name, value]) => [
      name,
      rename(value),
    ]),
  );
  const { hostname, port } = new URL(origin);
  return new Promise((resolve, reject) => {
    const sent = request({ hostname, port, method: exchange.method, path: rename(exchange.path), headers }, (answer) => {
      const chunks: Buffer[] = [];
      answer.on('data', (chunk: Buffer) => chunks.push(chunk));
      answer.on('error', reject);
      answer.on('end', () =>
        resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text: Buffer.concat(chunks).toString('utf8') }),
      );
    });
    sent.setTimeout(90_000, () => sent.destroy(new Error(`no answer to ${exchange.method} ${exchange.path} within 90 s`)));
    sent.on('error', reject);
    sent.end(body);
  });
}

/** Where an answer may differ from the recorded one and be right all the same, with the reason. */
export interface Allowance {
  why: string;
  applies(exchange: Exchange): boolean;
  status?: number | number[];
  /** Adjusts both parsed bodies before they are compared. */
  normalise?(value: unknown, side: 'recorded' | 'live'): unknown;
  /** Only the status is compared. */
  anyBody?: boolean;
}

export interface ReplayResult {
  compared: number;
  /** One line for every exchange that differs. */
  differences: string[];
  answers: Map<number, Answer>;
}

export interface ReplayOptions {
  allowances: Allowance[];
  /** Exchanges that are left out, with every id that they would have given. */
  skip?: (exchange: Exchange) => boolean;
  /** Seconds between two exchanges are not kept; these are sent at the same moment as the next one. */
  together?: (exchange: Exchange) => boolean;
  rename?: Record<string, string>;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

const isStream = (text: string) => text.startsWith('event:') || text.startsWith(':');

/** Plays a recording against a live server and compares every answer that is not a stub's. */
export async function replay(origin: string, exchanges: Exchange[], options: ReplayOptions): Promise<ReplayResult> {
  const names = new Map<string, string>(Object.entries(options.rename ?? {}));
  const rename = (text: string) => {
    let renamed = text;
    for (const [recorded, live] of names) renamed = renamed.replaceAll(recorded, live);
    return renamed;
  };
  const result: ReplayResult = { compared: 0, differences: [], answers: new Map() };
  let pending: Promise<void>[] = [];

  const play = async (exchange: Exchange) => {
    const answer = await send(origin, exchange, rename);
    result.answers.set(exchange.seq, answer);
    if (isStream(exchange.response) && isStream(answer.text)) {
      const recorded = fold(exchange.response).taskId;
      const live = fold(answer.text).taskId;
      if (recorded !== null && live !== null) names.set(recorded, live);
    }
    if (exchange.stub) return;
    result.compared += 1;
    const difference = compare(exchange, answer, rename, options.allowances);
    if (difference !== null)
      result.differences.push(`${exchange.seq} ${exchange.method} ${exchange.path} ${exchange.body.slice(0, 80)}: ${difference}`);
  };

  for (const exchange of exchanges) {
    if (options.skip?.(exchange)) continue;
    pending.push(play(exchange));
    if (options.together?.(exchange)) {
      await new Promise((resolve) => setTimeout(resolve, 30));
      continue;
    }
    await Promise.all(pending);
    pending = [];
  }
  await Promise.all(pending);
  return result;
}

function compare(exchange: Exchange, answer: Answer, rename: (text: string) => string, allowances: Allowance[]): string | null {
  const granted = allowances.filter((allowance) => allowance.applies(exchange));
  const statuses = [exchange.status, ...granted.flatMap((allowance) => allowance.status ?? [])];
  if (!statuses.includes(answer.status)) return `status ${answer.status} instead of ${exchange.status}: ${answer.text.slice(0, 300)}`;
  // An allowed other status comes with a text of its own; what it says is compared by the specs of that status.
  if (answer.status !== exchange.status || granted.some((allowance) => allowance.anyBody)) return null;
  const normalise = (value: unknown, side: 'recorded' | 'live') =>
    granted.reduce((body, allowance) => allowance.normalise?.(body, side) ?? body, value);
  const recorded = isStream(exchange.response) ? foldedBody(rename(exchange.response)) : parse(rename(exchange.response));
  const live = isStream(answer.text) ? foldedBody(answer.text) : parse(answer.text);
  const left = stable(normalise(withoutOurKeys(recorded), 'recorded'));
  const right = stable(normalise(withoutOurKeys(live), 'live'));
  return left === right ? null : `\n  recorded ${left.slice(0, 600)}\n  live     ${right.slice(0, 600)}`;
}

function foldedBody(stream: string): unknown {
  const { kind, value } = fold(stream);
  return { kind, value };
}

/** `message`, `statusCode` and `code` stand beside `detail` in every error of ours. */
function withoutOurKeys(body: unknown): unknown {
  if (body === null || typeof body !== 'object' || !('detail' in body)) return body;
  return { detail: body.detail };
}

/** JSON with sorted keys: two documents are equal when their texts are. */
function stable(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    inner !== null && typeof inner === 'object' && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}
