import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { PalestraError } from '@palestra/protocol';
import { type Command, type Level, LEVELS, type Program, sandboxCommand } from './command.ts';
import { containerCommand, type ContainerSettings, removeLeftContainers } from './container.ts';
import { makeProgramFolder } from './program-folder.ts';

const PROBE_DEADLINE_MS = 20_000;
const ADVICE = 'Install bubblewrap (package "bubblewrap", program "bwrap") and allow unprivileged user namespaces';

export interface IsolationSettings {
  /** The only allowed level; undefined: the strongest available. */
  forced?: Level | undefined;
  /** Image for level `container`; undefined: not available. */
  container?: ContainerSettings | undefined;
  /** Whether other machines can reach the service. */
  isExposed: boolean;
  /** The operator accepts level `process` for an exposed service. */
  allowWeak: boolean;
}

export interface Isolation {
  /** null: programs cannot be isolated. */
  level: Level | null;
  container?: ContainerSettings | undefined;
  /** Why sessions are refused; null: they are not. */
  refusal: string | null;
  /** For operators: the level, and what prevents a stronger one. */
  summary: string;
}

/** A level with what it needs. */
export interface Sandbox {
  level: Level;
  container?: ContainerSettings | undefined;
}

export function commandOf({ level, container }: Sandbox, program: Program): Command {
  if (level !== 'container') return sandboxCommand(level, program);
  if (container === undefined) throw new Error('PALESTRA_SANDBOX_IMAGE names no image');
  return containerCommand(container, program);
}

/** Tries each level, strongest first, by starting Node.js. */
export async function detectIsolation(
  settings: IsolationSettings,
  probe: (sandbox: Sandbox) => Promise<void> = probeLevel,
): Promise<Isolation> {
  const { forced, container } = settings;
  const offered = LEVELS.filter((level) => level !== 'container' || container !== undefined);
  const failures: string[] = [];
  for (const level of forced === undefined ? offered : [forced]) {
    try {
      await probe({ level, container });
      return judge(level, failures, settings);
    } catch (error) {
      failures.push(`level "${level}" does not work here: ${(error as Error).message}`);
    }
  }
  const why = failures.join('; ');
  return { level: null, refusal: `Programs cannot be isolated on this machine: ${why}. ${ADVICE}.`, summary: `Isolation: none, ${why}.` };
}

function judge(level: Level, failures: string[], { container, isExposed, allowWeak }: IsolationSettings): Isolation {
  const summary = `Isolation: ${level}${failures.map((failure) => `; ${failure}`).join('')}.`;
  if (level !== 'process' || !isExposed) return { level, container, refusal: null, summary };
  if (allowWeak) return { level, refusal: null, summary: `${summary} Warning: PALESTRA_WEAK_ISOLATION allows this on an exposed service.` };
  const refusal =
    `Programs run only behind namespaces while the service listens on a non-loopback address, and here it has level "process". ` +
    `${ADVICE}, or set PALESTRA_WEAK_ISOLATION=1 to accept the risk.`;
  return { level, refusal, summary: `${summary} Sessions are refused: ${refusal}` };
}

/** Reads the variables that the service passes (docs/operations.md). */
export function readIsolationSettings(env: NodeJS.ProcessEnv): IsolationSettings {
  const forced = env['PALESTRA_ISOLATION'];
  if (forced && !LEVELS.includes(forced as Level)) throw new Error(`PALESTRA_ISOLATION: ${forced} is not one of ${LEVELS.join(', ')}`);
  return {
    forced: forced ? (forced as Level) : undefined,
    container: env['PALESTRA_SANDBOX_IMAGE']
      ? { engine: env['PALESTRA_CONTAINER_ENGINE'] || undefined, image: env['PALESTRA_SANDBOX_IMAGE'] }
      : undefined,
    isExposed: !isLoopback(env['HOST'] ?? '127.0.0.1'),
    allowWeak: ['1', 'true'].includes(env['PALESTRA_WEAK_ISOLATION'] ?? ''),
  };
}

/** Names other than `localhost` may resolve to any address. */
function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host === '[::1]' || /^127(?:\.\d{1,3}){3}$/.test(host);
}

/** Rejects with the error output. */
async function probeLevel(sandbox: Sandbox): Promise<void> {
  const folder = await makeProgramFolder();
  try {
    if (sandbox.level === 'container' && sandbox.container) await removeLeftContainers(sandbox.container);
    const { command, args, ...options } = commandOf(sandbox, { folder: folder.path, flags: ['--version'], args: [''] });
    await promisify(execFile)(command, args, { env: {}, ...options, timeout: PROBE_DEADLINE_MS });
  } catch (error) {
    const { stderr, message } = error as { stderr?: string; message: string };
    throw new Error((stderr || message).trim().split('\n').at(-1), { cause: error });
  } finally {
    await folder.remove();
  }
}

let detected: Promise<Isolation> | null = null;
/** Detected once per process. */
export function isolation(): Promise<Isolation> {
  return (detected ??= detectIsolation(readIsolationSettings(process.env)));
}

/** Throws if programs must not run. */
export function requireSandbox({ level, container, refusal }: Isolation): Sandbox {
  if (level === null || refusal !== null) throw new PalestraError('isolation_required', { detail: refusal! });
  return { level, container };
}
