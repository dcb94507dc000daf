import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { findTool, nextUserId } from './tools.ts';
import type { Command, Program } from './command.ts';

/** Of a command to the engine that starts nothing. */
const ANSWER_MS = 20_000;
/** The service that started it: containers outlive a service that is killed. */
const LABEL = 'palestra.sandbox';
/** Docker or Podman by its command line, as the CLI uses it, and an image of its machine that has `node`. */
export interface ContainerSettings {
  /** `docker`, `podman` or a path; undefined = the first of the two that is installed. */
  engine?: string | undefined;
  image: string;
}

/** No network, nothing that can be written, no capability, the engine's default seccomp profile. */
const OPTIONS = [
  '--interactive',
  '--rm',
  '--pull=never',
  '--network=none',
  '--read-only',
  '--cap-drop=ALL',
  '--security-opt=no-new-privileges',
  '--pids-limit=64',
  '--memory=1g',
  '--memory-swap=1g',
  '--cpus=1',
  '--ulimit=nofile=64:64',
  '--ulimit=nproc=64:64',
  '--ulimit=fsize=0:0',
  '--ulimit=core=0:0',
  // In seconds of the processor: the end of one whose service was killed while it computes.
  '--ulimit=cpu=3600:3600',
  // What it writes is the service's to keep, or not.
  '--log-driver=none',
  '--no-healthcheck',
  '--entrypoint=node',
];

/** The command that starts the program in a new container. The folder is mounted at its own path: the engine must find it there. */
export function containerCommand({ engine, image }: ContainerSettings, { folder, flags, args: [file, ...args] }: Program): Command {
  const name = `palestra-sandbox-${randomUUID()}`;
  const uid = nextUserId();
  const mount = [`--user=${uid}:${uid}`, `--volume=${folder}:${folder}:ro`, `--workdir=${path.join(folder, 'empty')}`];
  // The name at the end tells its process from all others.
  const node = [...flags, '--no-warnings', path.join(folder, file!), ...args, name];
  return {
    command: findEngine(engine),
    args: ['run', `--name=${name}`, `--label=${LABEL}=${serviceLabel(process.pid)}`, ...OPTIONS, ...mount, image, ...node],
    cwd: '/',
    // The client of the engine finds it by these. A container gets none of them.
    env: process.env,
    container: name,
  };
}

function findEngine(engine: string | undefined): string {
  const names = engine === undefined ? ['docker', 'podman'] : [engine];
  const found = names.map((name) => findTool(name)).find((tool) => tool !== null);
  if (found) return found;
  throw new Error(`there is no program ${names.join(' or ')}`);
}

const serviceLabel = (pid: number) => `${hostname()}/${pid}`;

/** Rejects with what the engine said. */
async function ask(engine: string, ...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(engine, args, { timeout: ANSWER_MS });
  return stdout.trim();
}

/** Resolves when it runs no more, or the engine does not answer. The engine removes what has ended. */
export async function killContainer({ command, container }: Command): Promise<void> {
  await ask(command, 'kill', container!).catch(() => {});
}

/** Process id of what runs in the container, as this process sees it; null where it does not, as from inside another container. */
export async function processOfContainer({ command, container }: Command): Promise<number | null> {
  try {
    const pid = Number(await ask(command, 'container', 'inspect', '--format={{.State.Pid}}', container!));
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(container!) ? pid : null;
  } catch {
    return null;
  }
}

/** Ends containers of services on this machine that were killed. This process must not have started any. */
export async function removeLeftContainers({ engine }: ContainerSettings): Promise<void> {
  const command = findEngine(engine);
  const rows = await ask(command, 'ps', '--all', `--filter=label=${LABEL}`, `--format={{.Names}} {{.Label "${LABEL}"}}`);
  const left = rows.split('\n').filter((row) => {
    const [host, pid] = (row.split(' ')[1] ?? '').split('/');
    return host === hostname() && (Number(pid) === process.pid || !isRunning(Number(pid)));
  });
  if (left.length > 0) await ask(command, 'rm', '--force', ...left.map((row) => row.split(' ')[0]!));
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
