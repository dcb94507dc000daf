import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { fail, type Finding, ok, warn } from './check.ts';

const GB = 1024 ** 3;
const LOW_BYTES = 5 * GB;
const FULL_BYTES = GB;
/** Docker and kubectl wait for a daemon or a cluster that is away. */
const ENGINE_DEADLINE_MS = 8_000;

/** Supported: 20 from 20.19, and 22.12 or newer. */
export function checkNode(version = process.versions.node): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const isSupported = (major === 20 && minor >= 19) || (major === 22 && minor >= 12) || major > 22;
  return isSupported
    ? ok(`Node.js ${version}`)
    : fail(`Node.js ${version} is not supported.`, 'Install Node.js 24, or 20.19 or newer, from https://nodejs.org.');
}

/** Free space where the data directory is or will be. */
export async function checkDisk(dataDir: string, read: typeof statfs = statfs): Promise<Finding> {
  const folder = existingFolder(path.resolve(dataDir));
  const { bavail, bsize } = await read(folder);
  const free = bavail * bsize;
  const text = `${(free / GB).toFixed(1)} GB are free for ${path.resolve(dataDir)}`;
  if (free < FULL_BYTES) return fail(`Only ${text}.`, 'Free disk space, or set PALESTRA_DATA_DIR to a folder on a larger disk.');
  if (free < LOW_BYTES) return warn(`Only ${text}.`, 'Free disk space before the service refuses uploads.');
  return ok(`${text}.`);
}

const existingFolder = (folder: string): string => (existsSync(folder) ? folder : existingFolder(path.dirname(folder)));

interface Engine {
  name: string;
  args: string[];
}
const ENGINES: readonly Engine[] = [
  { name: 'docker', args: ['version', '--format', '{{.Server.Version}}'] },
  { name: 'podman', args: ['version', '--format', '{{.Client.Version}}'] },
  { name: 'kubectl', args: ['version', '-o', 'json', '--request-timeout=5s'] },
];

type EngineState = { state: 'answers'; version: string } | { state: 'missing' } | { state: 'silent'; reason: string };

/** Docker or Podman run images for `palestra env serve` and programs at isolation level "container"; both are optional. */
export async function checkContainers(probe: (engine: Engine) => Promise<EngineState> = probeEngine): Promise<Finding> {
  const found = await Promise.all(ENGINES.map(async (engine) => ({ name: engine.name, ...(await probe(engine)) })));
  const detail = found
    .map((one) => {
      if (one.state === 'missing') return `${one.name} is not installed`;
      return one.state === 'answers' ? `${one.name} ${one.version} answers` : `${one.name} does not answer (${one.reason})`;
    })
    .join('; ');
  const engines = found.filter(({ name }) => name !== 'kubectl');
  if (engines.some(({ state }) => state === 'answers')) return ok(`${detail}.`);
  const silent = engines.find(({ state }) => state === 'silent');
  if (silent) return warn(`${detail}.`, `Start ${silent.name}, if you want to serve environments from images.`);
  return warn(`${detail}.`, 'Install Docker or Podman, if you want to serve environments from images.');
}

async function probeEngine({ name, args }: Engine): Promise<EngineState> {
  try {
    const { stdout } = await promisify(execFile)(name, args, { timeout: ENGINE_DEADLINE_MS, killSignal: 'SIGKILL' });
    return { state: 'answers', version: versionOf(stdout) };
  } catch (error) {
    const { code, killed, stderr } = error as NodeJS.ErrnoException & { killed?: boolean; stderr?: string };
    if (code === 'ENOENT') return { state: 'missing' };
    const line = stderr?.trim().split('\n').at(-1);
    return { state: 'silent', reason: killed ? `nothing within ${ENGINE_DEADLINE_MS / 1_000} s` : line || (error as Error).message };
  }
}

/** The server's version in the JSON of kubectl, else the first line. */
function versionOf(stdout: string): string {
  try {
    const { serverVersion } = JSON.parse(stdout) as { serverVersion?: { gitVersion?: string } };
    return serverVersion?.gitVersion ?? 'without a cluster';
  } catch {
    return stdout.trim().split('\n')[0] ?? '';
  }
}
