import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';

const RANGE_FILE = '/proc/sys/net/ipv4/ip_local_port_range';
const FIRST_UNPRIVILEGED = 1_024;
/** Number of ports below the ephemeral range that are tried. */
const SPAN = 12_000;
/** With fewer ports the ephemeral range is used. */
const LEAST_SPAN = 500;
const ATTEMPTS = 100;

/** First port of the system's ephemeral range. */
function firstEphemeral(): number {
  try {
    return Number(readFileSync(RANGE_FILE, 'utf8').split(/\s+/, 1)[0]);
  } catch {
    return 32_768;
  }
}

/**
 * Returns a free TCP port for a process that must be given one. It is outside the ephemeral range, so that no other process gets it by chance
 * before the start or during a restart, and no other call on this machine returns it until this process ends. If the ephemeral range covers
 * all ports, it is any free port. `below`: upper limit. Rejects if nothing can listen at `host`.
 */
export async function freePort(host = '127.0.0.1', below = firstEphemeral()): Promise<number> {
  const start = Math.max(FIRST_UNPRIVILEGED, below - SPAN);
  for (let attempt = 0; attempt < ATTEMPTS && below - start >= LEAST_SPAN; attempt += 1) {
    const port = start + Math.floor(Math.random() * (below - start));
    const free = await listening(port, host).catch(() => null);
    if (free !== null && (await reserve(free))) return free;
  }
  return listening(0, host);
}

/** Ports that this process wanted and got. */
const ours = new Set<number>();

/**
 * Returns the wanted port if nothing listens at it and no other process got it, else one of `freePort`. Without a reservation, two processes
 * that start at the same time would both find it free.
 */
export async function portOrFree(wanted: number, host = '127.0.0.1'): Promise<number> {
  const free = await listening(wanted, host).catch(() => null);
  if (free === null || (!ours.has(free) && !(await reserve(free)))) return freePort(host);
  ours.add(free);
  return free;
}

/** Reserves a number among these callers by its UDP port, which the system gives to one process and which nothing else uses. */
async function reserve(port: number): Promise<boolean> {
  const socket = createSocket('udp4');
  try {
    socket.bind({ port, address: '127.0.0.1', exclusive: true });
    await once(socket, 'listening');
    socket.unref();
    return true;
  } catch {
    socket.close();
    return false;
  }
}

/** Listens briefly and returns the port. */
async function listening(port: number, host: string): Promise<number> {
  const server = createServer().listen(port, host);
  await once(server, 'listening');
  const bound = (server.address() as AddressInfo).port;
  server.close();
  await once(server, 'close');
  return bound;
}
