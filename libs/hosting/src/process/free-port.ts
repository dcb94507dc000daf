import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';

const RANGE_FILE = '/proc/sys/net/ipv4/ip_local_port_range';
const FIRST_UNPRIVILEGED = 1_024;
/** Ports that are looked at, right below those that the system gives away. */
const SPAN = 12_000;
/** Fewer are no choice. */
const LEAST_SPAN = 500;
const ATTEMPTS = 100;

/** The first port that the system gives to whoever asks for any, and to connections that go out. */
function firstEphemeral(): number {
  try {
    return Number(readFileSync(RANGE_FILE, 'utf8').split(/\s+/, 1)[0]);
  } catch {
    return 32_768;
  }
}

/**
 * A port that nobody listens at, for a process that must be told its port. Between this and its start, and while it is restarted, nobody gets it by
 * chance: it is none that the system gives away, and others who call this look at other places. Where the system gives away all of them, any
 * free one. `below`: only ports under this. Rejects when nothing can listen at `host`.
 */
export async function freePort(host = '127.0.0.1', below = firstEphemeral()): Promise<number> {
  const start = Math.max(FIRST_UNPRIVILEGED, below - SPAN);
  for (let attempt = 0; attempt < ATTEMPTS && below - start >= LEAST_SPAN; attempt += 1) {
    const port = start + Math.floor(Math.random() * (below - start));
    const free = await listening(port, host).catch(() => null);
    if (free !== null) return free;
  }
  return listening(0, host);
}

/** Listens for a moment; answers where. */
async function listening(port: number, host: string): Promise<number> {
  const server = createServer().listen(port, host);
  await once(server, 'listening');
  const bound = (server.address() as AddressInfo).port;
  server.close();
  await once(server, 'close');
  return bound;
}
