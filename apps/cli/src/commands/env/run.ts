import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { once } from 'node:events';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { freePort, SupervisedProcess } from '@palestra/hosting';
import { UsageError } from '../../settings.ts';
import type { Target } from './target.ts';

export interface RunOptions {
  host: string;
  /** 0 = any free one. */
  port: number;
  /** Interpreter of an OpenEnv environment; undefined = the folder's own virtual environment, else the one that is active, else python3. */
  python: string | undefined;
}

export interface RunningTarget {
  url: string;
  process: SupervisedProcess;
}

const KIT_MAIN = fileURLToPath(new URL('../../kit/serve-kit.js', import.meta.url));
/** Python takes its time to import a server. */
const READY_TIMEOUT_MS = 120_000;
const POLL_MS = 100;

/**
 * uvicorn, told to say when it listens and to end with us. `sys.path` begins with the working directory, as with `python -m uvicorn`.
 */
const UVICORN = `
import json, os, sys, threading, uvicorn
class Server(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets=sockets)
        if self.started:
            print(json.dumps({"ready": True}), flush=True)
def end_with_parent():
    sys.stdin.buffer.read()
    os._exit(0)
threading.Thread(target=end_with_parent, daemon=True).start()
Server(uvicorn.Config(sys.argv[1], host=sys.argv[2], port=int(sys.argv[3]), log_level="warning")).run()
`;

/** Serves the target, and again when its process dies. Rejects when it cannot even start, with what it said last. */
export async function runTarget(target: Target, options: RunOptions, signal: AbortSignal): Promise<RunningTarget> {
  const port = options.port === 0 ? await freePort(options.host) : options.port;
  const { command, args, cwd, env } =
    target.kind === 'kit' ? kitCommand(target.file, options.host, port) : await uvicorn(target, options, port);
  const child: SupervisedProcess = new SupervisedProcess({
    name: path.basename(target.folder),
    command,
    args,
    cwd: cwd ?? target.folder,
    env: { ...process.env, ...env },
    readyTimeoutMs: READY_TIMEOUT_MS,
    onLost: () => process.stderr.write(`the environment died and is started again\n${child.logs().slice(-20).join('\n')}\n`),
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

interface ChildCommand {
  command: string;
  args: string[];
  cwd?: string;
  env?: NodeJS.ProcessEnv;
}

const kitCommand = (file: string, host: string, port: number): ChildCommand => ({
  command: process.execPath,
  args: [KIT_MAIN, file, host, String(port)],
});

async function uvicorn(target: Extract<Target, { kind: 'openenv' }>, options: RunOptions, port: number): Promise<ChildCommand> {
  const { folder, manifest, server } = target;
  if (server === null)
    throw new UsageError(`${folder}: there is no server of it (app: ${manifest.app ?? 'server.app:app'}); set app in openenv.yaml`);
  const command = options.python ?? pythonOf(folder);
  await promisify(execFile)(command, ['-c', 'import uvicorn'], { cwd: server.cwd }).catch((error: unknown) => {
    const missing = (error as { code?: unknown }).code === 'ENOENT';
    const how = missing ? 'it is not there' : 'it has no uvicorn: install the environment into it, as with "pip install -e ."';
    throw new UsageError(`cannot serve with the Python ${command}: ${how}; name another one with --python`);
  });
  const env = { PYTHONUNBUFFERED: '1', PYTHONDONTWRITEBYTECODE: '1', ...manifest.variables };
  return { command, args: ['-c', UVICORN, server.app, options.host, String(port)], cwd: server.cwd, env };
}

function pythonOf(folder: string): string {
  const own = path.join(folder, '.venv/bin/python');
  const active = process.env['VIRTUAL_ENV'];
  return existsSync(own) ? own : active ? path.join(active, 'bin/python') : 'python3';
}

/** Later deaths are mended; one before it was ever ready is a mistake in the environment. */
async function firstReady(child: SupervisedProcess, signal: AbortSignal): Promise<void> {
  while (child.ready === null) {
    signal.throwIfAborted();
    if (child.lastExit !== null)
      throw new Error([`the environment ${child.lastExit} before it served anything`, ...child.logs().slice(-20)].join('\n'));
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** Resolves at Ctrl-C, SIGTERM or the end of `signal`. */
export async function untilStopped(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await once(signal, 'abort');
}
