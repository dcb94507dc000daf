import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';

const RANGE_FILE = '/proc/sys/net/ipv4/ip_local_port_range';
/** Ports that are looked at, right below those that the system gives away. */
const SPAN = 12_000;

/** The first port that the system gives to whoever asks for any, and to connections that go out. */
function firstEphemeral(): number {
  try {
    return Number(readFileSync(RANGE_FILE, 'utf8').split(/\s+/, 1)[0]);
  } catch {
    return 32_768;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  server.listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}

/**
 * A port that nobody listens at, for a process that must be told its port. Between this and its start, and while it is restarted, nobody gets it by
 * chance: it is none that the system gives away, and others who call this look at other places.
 */
export async function freePort(): Promise<number> {
  const end = firstEphemeral();
  const start = Math.max(1_024, end - SPAN);
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const port = start + Math.floor(Math.random() * (end - start));
    if (await isFree(port)) return port;
  }
  throw new Error(`no free port from ${start} to ${end}`);
}
