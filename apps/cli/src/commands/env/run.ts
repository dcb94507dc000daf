import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { once } from 'node:events';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { freePort, SupervisedProcess } from '@palestra/hosting';
import { UsageError } from '../../settings.ts';
import { assertLibraryServer, type LibrarySpec } from './library.ts';
import type { Target } from './target.ts';

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

const KIT_MAIN = fileURLToPath(new URL('../../kit/serve-kit.js', import.meta.url));
/** Importing a Python server can take long. */
const READY_TIMEOUT_MS = 120_000;
const POLL_MS = 100;

/** A server of uvicorn that prints a line when it listens. The process ends with this one, which holds its standard input. */
const LISTENING = `
import json, os, runpy, sys, threading, uvicorn
class Listening(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets=sockets)
        if self.started:
            print(json.dumps({"ready": True}), flush=True)
def end_with_parent():
    sys.stdin.buffer.read()
    os._exit(0)
threading.Thread(target=end_with_parent, daemon=True).start()
target, host, port = sys.argv[1:4]
`;

/** Runs the application that uvicorn names. `sys.path` begins with the working directory, as with `python -m uvicorn`. */
const UVICORN = `${LISTENING}
Listening(uvicorn.Config(target, host=host, port=int(port), log_level="warning")).run()
`;

/** Runs a server of the package `openreward` or `ors`, which starts uvicorn with an address of its choice, on our address. */
const ORS_SERVER = `${LISTENING}
def run(app, **options):
    Listening(uvicorn.Config(app, **{**options, "host": host, "port": int(port), "log_level": "warning"})).run()
uvicorn.run = run
sys.argv = [target]
sys.path.insert(0, os.path.dirname(os.path.abspath(target)))
runpy.run_path(target, run_name="__main__")
`;

/** Serves the target and restarts its process when it exits. Rejects with its last log lines if it cannot start. */
export async function runTarget(target: Target, options: RunOptions, signal: AbortSignal): Promise<RunningTarget> {
  const port = options.port === 0 ? await freePort(options.host) : options.port;
  const { command, args, cwd, env } = await commandOf(target, options, port);
  const child: SupervisedProcess = new SupervisedProcess({
    name: target.kind === 'library' ? target.library.spec : path.basename(target.folder),
    command,
    args,
    cwd: cwd ?? target.folder,
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
  switch (target.kind) {
    case 'kit':
      return kitCommand(target.file, options.host, port);
    case 'openenv':
      return openenvCommand(target, options, port);
    case 'library':
      return libraryCommand(target.library, target.folder, options, port);
    case 'ors': {
      const args = ['-c', ORS_SERVER, target.file, options.host, String(port)];
      return { command: await pythonWithUvicorn(options.python ?? pythonOf(target.folder), target.folder), args, env: PYTHON_VARIABLES };
    }
  }
}

export interface ChildCommand {
  command: string;
  args: string[];
  cwd?: string;
  env?: NodeJS.ProcessEnv;
}

const kitCommand = (file: string, host: string, port: number): ChildCommand => ({
  command: process.execPath,
  args: [KIT_MAIN, file, host, String(port)],
});

const PYTHON_VARIABLES = { PYTHONUNBUFFERED: '1', PYTHONDONTWRITEBYTECODE: '1' };

async function openenvCommand(
  target: Extract<Target, { kind: 'openenv' }>,
  options: Omit<RunOptions, 'port'>,
  port: number,
): Promise<ChildCommand> {
  const { folder, manifest, server } = target;
  if (server === null)
    throw new UsageError(`${folder}: the server module ${manifest.app ?? 'server.app:app'} does not exist. Set app in openenv.yaml.`);
  const command = await pythonWithUvicorn(options.python ?? pythonOf(folder), server.cwd);
  const env = { ...PYTHON_VARIABLES, ...manifest.variables };
  return { command, args: ['-c', UVICORN, server.app, options.host, String(port)], cwd: server.cwd, env };
}

async function libraryCommand(
  library: LibrarySpec,
  folder: string,
  options: Omit<RunOptions, 'port'>,
  port: number,
): Promise<ChildCommand> {
  const command = options.python ?? pythonOf(folder);
  await assertLibraryServer(command, library, folder);
  const address = ['--host', options.host, '--port', String(port), '--end-with-input'];
  return { command, args: ['-m', 'palestra.serve', library.spec, ...library.args, ...address], env: PYTHON_VARIABLES };
}

async function pythonWithUvicorn(command: string, cwd: string): Promise<string> {
  await promisify(execFile)(command, ['-c', 'import uvicorn'], { cwd }).catch((error: unknown) => {
    const missing = (error as { code?: unknown }).code === 'ENOENT';
    const how = missing ? 'it does not exist' : 'it has no uvicorn. Install the environment into it, for example with "pip install -e ."';
    throw new UsageError(`Cannot serve with the Python ${command}: ${how}. Choose another one with --python.`);
  });
  return command;
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
