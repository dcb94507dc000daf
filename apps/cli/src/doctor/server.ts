import { readBoundedText } from '@palestra/kit';
import { VERSION } from '@palestra/protocol/version';
import { readSettings } from '../server-settings.ts';
import { fail, type Finding, messageOf, ok, warn } from './check.ts';

const DEADLINE_MS = 5_000;
const MAX_BYTES = 1_000_000;
const CODING_ENV = '/v1/environments/palestra/coding_env';
/** The header `Date` has whole seconds. */
const SKEW_WARN_MS = 5_000;
const SKEW_FAIL_MS = 60_000;

/** What the server answered first. */
export interface ServerProbe {
  url: string;
  apiKey: string;
  /** Null: there was no answer. */
  answer: { status: number; version: string | null; clockSkewMs: number | null } | null;
  /** Why there was no answer. */
  reason: string;
}

/** A response. Another server may have sent it, so no field is certain. */
interface Reply {
  status: number;
  headers: Headers;
  body: Partial<Record<'version' | 'detail' | 'status' | 'status_detail', unknown>> & Partial<Record<'user' | 'org', { name?: unknown }>>;
}

async function get(url: string, apiKey = ''): Promise<Reply> {
  const headers: Record<string, string> = apiKey ? { 'x-api-key': apiKey } : {};
  const answer = await fetch(url, { headers, signal: AbortSignal.timeout(DEADLINE_MS) });
  // A body that is too long, or no JSON, is not of a Palestra server.
  const body = await readBoundedText(answer.body, MAX_BYTES)
    .then((text) => JSON.parse(text) as Reply['body'] | null)
    .catch(() => null);
  return { status: answer.status, headers: answer.headers, body: body ?? {} };
}

/** Asks the server of PALESTRA_URL for its version and time. Never rejects, except for an invalid address. */
export async function probeServer(env: NodeJS.ProcessEnv): Promise<ServerProbe> {
  const settings = readSettings(env);
  const url = new URL(settings.url).origin;
  const sentAt = Date.now();
  try {
    const { status, body, headers } = await get(`${url}/version`);
    const middle = (sentAt + Date.now()) / 2;
    const date = Date.parse(headers.get('date') ?? '');
    // The header is rounded down to seconds: its middle is half a second later.
    const clockSkewMs = Number.isNaN(date) ? null : Math.round(middle - (date + 500));
    const version = typeof body.version === 'string' ? body.version : null;
    return { url, apiKey: settings.apiKey, answer: { status, version, clockSkewMs }, reason: '' };
  } catch (error) {
    return { url, apiKey: settings.apiKey, answer: null, reason: messageOf(error) };
  }
}

/** The result of a check that needs an answer of the server. `checkServer` says what to do. */
const notChecked = (): Finding => ({ status: 'warn', detail: 'Not checked: the server does not answer.', advice: null });

export async function checkServer({ url, answer, reason }: ServerProbe): Promise<Finding> {
  if (answer === null)
    return fail(`No server answers at ${url} (${reason}).`, 'Start one with "palestra up", or set PALESTRA_URL to the address of yours.');
  if (answer.version === null || !answer.version.includes('+palestra.'))
    return fail(`${url} is not a Palestra server.`, 'Set PALESTRA_URL to the address of a Palestra server.');
  const ready = await get(`${url}/health/ready`);
  if (ready.status === 200) return ok(`${url} is ready.`);
  const detail = String(ready.body.detail ?? ready.status);
  return fail(`${url} is not ready: ${detail}`, 'Look at the checks of PostgreSQL and the disk below, and at the logs of the service.');
}

export function checkVersions({ answer }: ServerProbe): Finding {
  const server = /\+palestra\.(.+)$/.exec(answer?.version ?? '')?.[1];
  if (server === undefined) return notChecked();
  if (server === VERSION) return ok(`Command line and server have version ${VERSION}.`);
  return warn(`The command line has version ${VERSION}, the server ${server}.`, `Install the same version: npm install palestra@${server}`);
}

export async function checkKey({ url, apiKey, answer }: ServerProbe): Promise<Finding> {
  if (answer === null) return notChecked();
  if (apiKey === '')
    return fail('No API key is set.', 'Set PALESTRA_API_KEY to the key that "palestra up" printed, or create one on the page API keys.');
  const { status, body } = await get(`${url}/v1/me`, apiKey);
  if (status === 200) return ok(`The key belongs to ${String(body.user?.name)} of ${String(body.org?.name)}.`);
  return fail(
    `The server refuses the key: ${String(body.detail ?? status)}`,
    'Set PALESTRA_API_KEY to a key of this server that is not revoked.',
  );
}

export function checkClock({ answer }: ServerProbe): Finding {
  return answer?.clockSkewMs == null ? notChecked() : judgeSkew(answer.clockSkewMs, 'the server');
}

/** `skewMs`: how much later the clock of this machine is. */
export function judgeSkew(skewMs: number, other: string): Finding {
  const size = Math.abs(skewMs);
  if (size < SKEW_WARN_MS) return ok(`The clock agrees with ${other}.`);
  const text = `The clock of this machine is ${(size / 1_000).toFixed(0)} s ${skewMs > 0 ? 'ahead of' : 'behind'} ${other}.`;
  const advice = 'Synchronise the clocks of both machines by NTP: signed URLs and recorded times depend on them.';
  return size < SKEW_FAIL_MS ? warn(text, advice) : fail(text, advice);
}

/** The level at which the server isolates programs that models write. */
export async function checkIsolation({ url, apiKey, answer }: ServerProbe): Promise<Finding> {
  if (answer === null) return notChecked();
  const { status, body } = await get(url + CODING_ENV, apiKey);
  if (status !== 200)
    return warn(`Not checked: ${String(body.detail ?? status)}`, 'Set a valid PALESTRA_API_KEY, and host the bundled environments.');
  const detail = String(body.status_detail ?? body.status);
  const level = /Isolation: (\w+)/.exec(detail)?.[1];
  const install = 'Install bubblewrap on the machine of the server and allow unprivileged user namespaces (docs/operations.md).';
  if (body.status !== 'ready' || level === undefined || level === 'none' || detail.includes('Sessions are refused'))
    return fail(detail, install);
  return level === 'process' ? warn(detail, install) : ok(detail);
}
