import { readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { HostingError } from '../../provider/hosting-error.ts';

/** Where an engine listens. `host` is null for a socket: the engine is on this machine. */
export type EngineAddress =
  | { socketPath: string; host: null }
  | { host: string; port: number; tls: { ca: Buffer; cert: Buffer; key: Buffer } | null };

/** `host`: `unix:///path` or `tcp://host:port`; default: the environment's DOCKER_HOST, then the usual sockets. */
export interface EngineOptions {
  host?: string;
  environment?: NodeJS.ProcessEnv;
}

const EXAMPLE = 'Write it as unix:///var/run/docker.sock or tcp://host:2376.';

/** Sockets of Docker and Podman, rootful and rootless, most usual first. */
function usualSockets(environment: NodeJS.ProcessEnv): string[] {
  const runtime = environment['XDG_RUNTIME_DIR'];
  const home = environment['HOME'];
  return [
    '/var/run/docker.sock',
    ...(runtime ? [path.join(runtime, 'docker.sock'), path.join(runtime, 'podman/podman.sock')] : []),
    ...(home ? [path.join(home, '.docker/run/docker.sock')] : []),
    '/run/podman/podman.sock',
  ];
}

/** Null if no address is set and no socket exists. Rejects with `engine_unavailable` if the address that is set cannot be read. */
export async function findEngine({ host, environment = process.env }: EngineOptions): Promise<EngineAddress | null> {
  const given = host ?? environment['DOCKER_HOST'];
  if (given) return parse(given, environment);
  for (const socketPath of usualSockets(environment)) {
    const found = await stat(socketPath).catch(() => null);
    if (found?.isSocket()) return { socketPath, host: null };
  }
  return null;
}

async function parse(text: string, environment: NodeJS.ProcessEnv): Promise<EngineAddress> {
  if (text.startsWith('/')) return { socketPath: text, host: null };
  if (!URL.canParse(text)) throw new HostingError('engine_unavailable', `"${text}" is not the address of an engine. ${EXAMPLE}`);
  const url = new URL(text);
  if (url.protocol === 'unix:' && url.pathname.length > 1) return { socketPath: decodeURIComponent(url.pathname), host: null };
  if (url.protocol === 'tcp:' && url.hostname) {
    const verified = environment['DOCKER_TLS_VERIFY'] === '1' || url.port === '2376';
    const tls = verified ? await certificates(environment) : null;
    return { host: url.hostname, port: Number(url.port) || (tls ? 2376 : 2375), tls };
  }
  throw new HostingError('engine_unavailable', `"${text}" is not the address of an engine. ${EXAMPLE}`);
}

async function certificates(environment: NodeJS.ProcessEnv) {
  const folder = environment['DOCKER_CERT_PATH'] ?? path.join(environment['HOME'] ?? '/', '.docker');
  try {
    const [ca, cert, key] = await Promise.all(['ca.pem', 'cert.pem', 'key.pem'].map((name) => readFile(path.join(folder, name))));
    return { ca: ca!, cert: cert!, key: key! };
  } catch (cause) {
    throw new HostingError('engine_unavailable', `The certificates of the engine cannot be read from ${folder}. Set DOCKER_CERT_PATH.`, {
      cause,
    });
  }
}
