import { readFileSync } from 'node:fs';

/**
 * Asks a service for its health, one request after another, until its standard input ends; then it says what it measured, as JSON after the line `ready`. A process of its own: the
 * attacks that a test prepares must not delay it.
 *
 * `blockedMs` of a request is how long it took, but at most the processor time of the service's main thread meanwhile. A busy machine makes a request
 * slow; it does not make the main thread compute.
 */
const [url, pid] = process.argv.slice(2);
const TICK_MS = 10;

/** utime and stime of the main thread: fields 14 and 15 of proc(5), behind the name, which may hold spaces. */
function cpuMs() {
  const fields = readFileSync(`/proc/${pid}/task/${pid}/stat`, 'utf8').split(') ').at(-1).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}
const rssMb = () => Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024;

const seen = { requests: 0, failed: 0, blockedMs: 0, slowestMs: 0, rssMb: 0 };
let ended = false;
process.stdin.on('end', () => (ended = true)).resume();
const memory = setInterval(() => (seen.rssMb = Math.max(seen.rssMb, rssMb())), 20);
while (!ended || seen.requests === 0) {
  const [started, cpu] = [performance.now(), cpuMs()];
  const status = await fetch(url).then(
    (answer) => answer.arrayBuffer().then(() => answer.status),
    () => 0,
  );
  const took = performance.now() - started;
  seen.requests += 1;
  seen.failed += status === 200 ? 0 : 1;
  seen.slowestMs = Math.max(seen.slowestMs, took);
  seen.blockedMs = Math.max(seen.blockedMs, Math.min(took, cpuMs() - cpu));
  if (seen.requests === 1) process.stdout.write('ready\n');
  await new Promise((resolve) => setTimeout(resolve, 5));
}
clearInterval(memory);
process.stdout.write(JSON.stringify(seen));
