import path from 'node:path';
import { findTool, nextUserId } from './tools.ts';

/** Isolation levels, strongest first. `container` needs an engine and an image that the operator sets. */
export const LEVELS = ['container', 'namespace', 'process'] as const;
export type Level = (typeof LEVELS)[number];

/** The program of the sandboxed process: a file in `folder`, the only folder that it can read. */
export interface Program {
  /** Absolute path. */
  folder: string;
  /** Flags of V8 and Node.js. */
  flags: string[];
  /** The file, relative to `folder`, and its arguments. */
  args: string[];
}
export interface Command {
  command: string;
  args: string[];
  cwd: string;
  /** User of the process; default: that of the service. */
  uid?: number;
  gid?: number;
  /** Environment of the command; default: empty. */
  env?: NodeJS.ProcessEnv;
  /** Set if the command is the client of an engine: the container's name. */
  container?: string;
}

/** Shares nothing with the machine, keeps no capability, allows no further user namespace, and ends with this process. */
const NAMESPACES = [
  '--unshare-user',
  '--unshare-pid',
  '--unshare-net',
  '--unshare-ipc',
  '--unshare-uts',
  '--unshare-cgroup-try',
  '--disable-userns',
  '--uid=65534',
  '--gid=65534',
  '--cap-drop=ALL',
  '--new-session',
  '--die-with-parent',
  '--as-pid-1',
].flatMap((argument) => argument.split('='));

/**
 * The command that starts the program at a level on this machine. `hasPermissions`: use Node's permission model, which tests of the levels
 * below it switch off.
 */
export function sandboxCommand(
  level: Exclude<Level, 'container'>,
  { folder, flags, args: [file, ...args] }: Program,
  hasPermissions = true,
): Command {
  const permissions = hasPermissions ? [permissionFlag(), `--allow-fs-read=${folder}/*`] : [];
  const node = [process.execPath, ...flags, ...permissions, '--no-warnings', path.join(folder, file!), ...args];
  const [command, ...rest] = [...wrapper(level, folder), ...node];
  return { command: command!, args: rest, cwd: path.join(folder, 'empty'), ...unprivilegedUser() };
}

/** The flag was renamed when it became stable; newer versions lack the old name. */
function permissionFlag(): string {
  return process.allowedNodeEnvironmentFlags.has('--permission') ? '--permission' : '--experimental-permission';
}

function wrapper(level: Level, folder: string): string[] {
  if (level === 'namespace') return [findTool('bwrap') ?? 'bwrap', ...namespaceArguments(folder)];
  // Only Linux has these tools. Elsewhere a process that reads its standard input ends with this one unless it computes.
  const setpriv = findTool('setpriv');
  return setpriv === null ? [] : [setpriv, '--no-new-privs', '--pdeathsig', 'KILL', '--'];
}

/** A read-only root with Node.js, its libraries and the folder; no /proc, no /dev and no other program. */
function namespaceArguments(folder: string): string[] {
  const visible = [process.execPath, ...libraries(), folder];
  const binds = visible.flatMap((file) => ['--ro-bind', file, file]);
  return [...NAMESPACES, ...binds, '--chdir', path.join(folder, 'empty'), '--remount-ro', '/'];
}

let knownLibraries: string[] | null = null;
/** Shared libraries of the running Node.js. */
function libraries(): string[] {
  const report = () => process.report.getReport() as unknown as { sharedObjects: string[] };
  return (knownLibraries ??= report().sharedObjects.filter((file) => path.isAbsolute(file) && !file.endsWith('.node')));
}

function unprivilegedUser(): { uid: number; gid: number } | object {
  if (process.getuid?.() !== 0) return {};
  const uid = nextUserId();
  return { uid, gid: uid };
}
