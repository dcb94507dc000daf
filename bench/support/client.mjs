// Requests over kept-alive connections with little CPU, because the client shares the machine with the servers under test.
import { Agent, request } from 'node:http';

/** Requests must end within this time, ms. */
const DEADLINE_MS = 120_000;
/** The official SDK sends a refused upload again so many times, then gives up. */
export const SDK_REPEATS = 5;
export const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const isStored = ({ rejected, conflicts }) => rejected.length === 0 && conflicts === 0;

/** A client of `url`. All methods throw on a status that is not 2xx. */
export function openClient(url, headers, connections) {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const exchange = (method, path, body, more = {}) =>
    new Promise((resolve, reject) => {
      const length = body === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
      const call = request(new URL(path, url), { agent, method, headers: { ...headers, ...length, ...more }, timeout: DEADLINE_MS });
      call.on('timeout', () => call.destroy(new Error(`${method} ${path}: no answer for ${DEADLINE_MS / 1000} s`)));
      call.on('error', reject);
      call.on('response', (answer) => {
        let text = '';
        answer.setEncoding('utf8');
        answer.on('data', (piece) => (text += piece));
        answer.on('error', reject);
        answer.on('end', () => resolve({ status: answer.statusCode, headers: answer.headers, text }));
      });
      call.end(body);
    });
  const failure = (method, path, { status, text }) => new Error(`${method} ${path}: ${status} ${text.slice(0, 600)}`);
  /** Returns the text of the answer. */
  const send = async (path, body, method = 'POST', more = {}) => {
    const answer = await exchange(method, path, body, more);
    if (answer.status < 200 || answer.status > 299) throw failure(method, path, answer);
    return answer.text;
  };
  return {
    send,
    /** Answer of a GET, its headers, and the time until its last byte. */
    async get(path) {
      const started = performance.now();
      const answer = await exchange('GET', path);
      if (answer.status !== 200) throw failure('GET', path, answer);
      return { ms: performance.now() - started, headers: answer.headers, body: JSON.parse(answer.text) };
    },
    /** Posts events. What the service refuses for the moment (503) is sent again after its `Retry-After`. Returns the number of refusals. */
    async upload(body) {
      for (let refusals = 0; ; refusals += 1) {
        const answer = await exchange('POST', '/v1/rollouts', body);
        if (answer.status === 503) await wait(Number(answer.headers['retry-after'] ?? 1) * 1000);
        else if (answer.status === 200 && isStored(JSON.parse(answer.text))) return refusals;
        else throw failure('POST', '/v1/rollouts', answer);
      }
    },
    close: () => agent.destroy(),
  };
}

/** Seconds in which `workers` finish all `jobs`; each worker runs one at a time. */
export async function drain(jobs, workers, work) {
  const left = jobs[Symbol.iterator]();
  const started = performance.now();
  const one = async () => {
    for (let next = left.next(); !next.done; next = left.next()) await work(next.value);
  };
  await Promise.all(Array.from({ length: workers }, one));
  return (performance.now() - started) / 1000;
}
