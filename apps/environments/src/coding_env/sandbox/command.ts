import path from 'node:path';
import { findTool, nextUserId } from './tools.ts';

/** Strongest first. `container` needs an engine and an image that the operator names. */
export const LEVELS = ['container', 'namespace', 'process'] as const;
export type Level = (typeof LEVELS)[number];

/** What the sandboxed process runs: a file in `folder`, which is all that it can read. */
export interface Program {
  /** Absolute. */
  folder: string;
  /** Flags of V8 and of Node.js. */
  flags: string[];
  /** The file, relative to `folder`, and its arguments. */
  args: string[];
}
export interface Command {
  command: string;
  args: string[];
  cwd: string;
  /** Of the user that it runs as; left out, the user of the service. */
  uid?: number;
  gid?: number;
  /** Of the command itself; left out, none. */
  env?: NodeJS.ProcessEnv;
  /** The command is the client of an engine, which runs the program in the container of this name. */
  container?: string;
}

/** Nothing of the machine is shared, no capability is kept, no further user namespace can be made, and the process ends with us. */
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

/** The command that starts the program at this level on this machine. `hasPermissions`: with Node's permission model, which tests of the levels below it switch off. */
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

/** Renamed when it became stable; the old name is gone in newer versions. */
function permissionFlag(): string {
  return process.allowedNodeEnvironmentFlags.has('--permission') ? '--permission' : '--experimental-permission';
}

function wrapper(level: Level, folder: string): string[] {
  if (level === 'namespace') return [findTool('bwrap') ?? 'bwrap', ...namespaceArguments(folder)];
  // Elsewhere than on Linux there is neither. A process that reads its standard input then ends with us unless it computes.
  const setpriv = findTool('setpriv');
  return setpriv === null ? [] : [setpriv, '--no-new-privs', '--pdeathsig', 'KILL', '--'];
}

/** A root of its own with Node.js, its libraries and the folder in it, read-only. There is no /proc, no /dev and no other program. */
function namespaceArguments(folder: string): string[] {
  const visible = [process.execPath, ...libraries(), folder];
  const binds = visible.flatMap((file) => ['--ro-bind', file, file]);
  return [...NAMESPACES, ...binds, '--chdir', path.join(folder, 'empty'), '--remount-ro', '/'];
}

let knownLibraries: string[] | null = null;
/** Shared libraries that this very Node.js has loaded. */
function libraries(): string[] {
  const report = () => process.report.getReport() as unknown as { sharedObjects: string[] };
  return (knownLibraries ??= report().sharedObjects.filter((file) => path.isAbsolute(file) && !file.endsWith('.node')));
}

function unprivilegedUser(): { uid: number; gid: number } | object {
  if (process.getuid?.() !== 0) return {};
  const uid = nextUserId();
  return { uid, gid: uid };
}
