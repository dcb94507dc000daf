// Posts over kept-alive connections with little CPU, because it shares the machine with the servers under test.
import { Agent, request } from 'node:http';

/** `send(path, body)` posts JSON, or uses `method`, and returns the parsed body. Throws on any status but 2xx. */
export function openPoster(url, headers, connections) {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const send = (path, body, method = 'POST') =>
    new Promise((resolve, reject) => {
      const call = request(new URL(path, url), {
        agent,
        method,
        headers: { ...headers, 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) },
      });
      call.on('error', reject);
      call.on('response', (answer) => {
        let text = '';
        answer.setEncoding('utf8');
        answer.on('data', (piece) => (text += piece));
        answer.on('end', () => {
          if (answer.statusCode >= 200 && answer.statusCode < 300) resolve(text);
          else reject(new Error(`${method} ${path}: ${answer.statusCode} ${text}`));
        });
      });
      call.end(body);
    });
  return { send, close: () => agent.destroy() };
}

/** Seconds in which `workers` finish all `jobs`; each worker runs one at a time. */
export async function drain(jobs, workers, work) {
  let next = 0;
  const started = performance.now();
  const one = async () => {
    while (next < jobs.length) {
      const at = next;
      next += 1;
      await work(jobs[at], at);
    }
  };
  await Promise.all(Array.from({ length: workers }, one));
  return (performance.now() - started) / 1000;
}
