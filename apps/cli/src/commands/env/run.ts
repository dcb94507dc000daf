import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { once } from 'node:events';
import path from 'node:path';
import { promisify } from 'node:util';
import {
  freePort,
  installAdvice,
  kitCommand,
  libraryCommand,
  type LibrarySpec,
  openenvCommand,
  orsCommand,
  type ServeCommand,
  SupervisedProcess,
  type Target,
} from '@palestra/hosting';
import { UsageError } from '../../settings.ts';

export interface RunOptions {
  host: string;
  /** 0 for any free port. */
  port: number;
  /** Interpreter of an OpenEnv environment; undefined: the virtual environment of the folder, else the active one, else python3. */
  python: string | undefined;
}

export interface RunningTarget {
  url: string;
  process: SupervisedProcess;
}

/** Importing a Python server can take long. */
const READY_TIMEOUT_MS = 120_000;
const POLL_MS = 100;

/** Serves the target and restarts its process when it exits. Rejects with its last log lines if it cannot start. */
export async function runTarget(target: Target, options: RunOptions, signal: AbortSignal): Promise<RunningTarget> {
  const port = options.port === 0 ? await freePort(options.host) : options.port;
  const { command, args, cwd, env } = await commandOf(target, options, port);
  const child: SupervisedProcess = new SupervisedProcess({
    name: target.kind === 'library' ? target.library.spec : path.basename(target.folder),
    command,
    args,
    cwd,
    env: { ...process.env, ...env },
    readyTimeoutMs: READY_TIMEOUT_MS,
    onLost: () => process.stderr.write(`The environment exited. Restarting it.\n${child.logs().slice(-20).join('\n')}\n`),
  });
  child.start();
  try {
    await firstReady(child, signal);
  } catch (error) {
    await child.stop();
    throw error;
  }
  return { url: `http://${options.host.includes(':') ? `[${options.host}]` : options.host}:${port}`, process: child };
}

/** The command that serves the target, and prints `{"ready":true}` when it listens. Throws `UsageError` without uvicorn. */
export async function commandOf(target: Target, options: Omit<RunOptions, 'port'>, port: number): Promise<ChildCommand> {
  const serving = { host: options.host, port, endsWithInput: true };
  const { folder } = target;
  if (target.kind === 'kit') return { ...kitCommand(target.file, serving), cwd: folder };
  const python = options.python ?? pythonOf(folder);
  switch (target.kind) {
    case 'openenv': {
      const { manifest, server } = target;
      if (server === null)
        throw new UsageError(`${folder}: the server module ${manifest.app ?? 'server.app:app'} does not exist. Set app in openenv.yaml.`);
      await assertUvicorn(python, server.cwd);
      const command = openenvCommand(server, serving, python);
      return { ...command, cwd: server.cwd, env: { ...command.env, ...manifest.variables } };
    }
    case 'library':
      await assertLibraryServer(python, target.library, folder);
      return { ...libraryCommand(target.library, serving, python), cwd: folder };
    case 'ors':
      await assertUvicorn(python, folder);
      return { ...orsCommand(target.file, serving, python), cwd: folder };
  }
}

export interface ChildCommand extends ServeCommand {
  cwd: string;
}

async function assertUvicorn(command: string, cwd: string): Promise<void> {
  await promisify(execFile)(command, ['-c', 'import uvicorn'], { cwd }).catch((error: unknown) => {
    const missing = (error as { code?: unknown }).code === 'ENOENT';
    const how = missing ? 'it does not exist' : 'it has no uvicorn. Install the environment into it, for example with "pip install -e ."';
    throw new UsageError(`Cannot serve with the Python ${command}: ${how}. Choose another one with --python.`);
  });
}

/** Throws `UsageError` with the pip command if the Python does not have the server; the server itself says it for the library. */
async function assertLibraryServer(python: string, { library }: LibrarySpec, cwd: string): Promise<void> {
  await promisify(execFile)(python, ['-c', 'import palestra.serve'], { cwd }).catch((error: unknown) => {
    if ((error as { code?: unknown }).code === 'ENOENT')
      throw new UsageError(`Cannot serve with the Python ${python}: it does not exist. Choose another one with --python.`);
    throw new UsageError(
      `The Python ${python} has no package palestra. ${installAdvice(library, python)}\nChoose another Python with --python.`,
    );
  });
}

function pythonOf(folder: string): string {
  const local = path.join(folder, '.venv/bin/python');
  const active = process.env['VIRTUAL_ENV'];
  return existsSync(local) ? local : active ? path.join(active, 'bin/python') : 'python3';
}

/** Waits until the process is ready. An exit before that is an error of the environment; later exits restart it. */
async function firstReady(child: SupervisedProcess, signal: AbortSignal): Promise<void> {
  while (child.ready === null) {
    signal.throwIfAborted();
    if (child.lastExit !== null)
      throw new Error([`the environment ${child.lastExit} before it was ready`, ...child.logs().slice(-20)].join('\n'));
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** Resolves when the signal aborts, for example on Ctrl-C. */
export async function untilStopped(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await once(signal, 'abort');
}
