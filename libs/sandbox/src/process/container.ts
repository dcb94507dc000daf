import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { findTool, nextUserId } from './tools.ts';
import type { Command, Program } from './command.ts';

/** Timeout of engine commands that start nothing. */
const ANSWER_MS = 20_000;
/** Label of the service that started it: containers survive a killed service. */
const LABEL = 'palestra.sandbox';
/** Docker or Podman by command line, and a local image that has `node`. */
export interface ContainerSettings {
  /** `docker`, `podman` or a path; undefined: the first one that is installed. */
  engine?: string | undefined;
  image: string;
}

/** No network, no writable file, no capability, the engine's default seccomp profile. */
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
  // Seconds of processor time: ends a computing process whose service was killed.
  '--ulimit=cpu=3600:3600',
  // The service stores its output, not the engine.
  '--log-driver=none',
  '--no-healthcheck',
  '--entrypoint=node',
];

/** The command that starts the program in a new container. The folder is mounted at its own path. */
export function containerCommand({ engine, image }: ContainerSettings, { folder, flags, args: [file, ...args] }: Program): Command {
  const name = `palestra-sandbox-${randomUUID()}`;
  const uid = nextUserId();
  const mount = [`--user=${uid}:${uid}`, `--volume=${folder}:${folder}:ro`, `--workdir=${path.join(folder, 'empty')}`];
  // The name identifies its process.
  const node = [...flags, '--no-warnings', path.join(folder, file!), ...args, name];
  return {
    command: findEngine(engine),
    args: ['run', `--name=${name}`, `--label=${LABEL}=${serviceLabel(process.pid)}`, ...OPTIONS, ...mount, image, ...node],
    cwd: '/',
    // The engine's client finds the engine by these variables. Containers do not get them.
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

/** Rejects with the engine's message. */
async function ask(engine: string, ...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(engine, args, { timeout: ANSWER_MS });
  return stdout.trim();
}

/** Resolves when the container has ended or the engine does not answer. The engine removes ended containers. */
export async function killContainer({ command, container }: Command): Promise<void> {
  await ask(command, 'kill', container!).catch(() => {});
}

/** Process id in the container as this process sees it; null if it cannot, as from inside another container. */
export async function processOfContainer({ command, container }: Command): Promise<number | null> {
  try {
    const pid = Number(await ask(command, 'container', 'inspect', '--format={{.State.Pid}}', container!));
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(container!) ? pid : null;
  } catch {
    return null;
  }
}

/** Ends containers of killed services on this machine. Call before starting any. */
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
