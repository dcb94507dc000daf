import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { HostingError } from '../provider/hosting-error.ts';
import { runCommand } from '../process/run-command.ts';
import { folderSize } from './folder-size.ts';
import { type GitCredentials, gitRemote, type ResolveHost } from './git-remote.ts';
import { safeParts } from './safe-path.ts';
import { type SourceLimits, sourceInvalid, tooManyBytes, tooManyEntries } from './source-limits.ts';
import { assertSource, type SourceEntry } from './source-tree.ts';

export interface GitSource {
  url: string;
  /** A branch, a tag, or the 40 digits of a commit; null: what `HEAD` of the remote names. */
  ref: string | null;
  /** The folder of the environment in the repository; null: its root. */
  subdirectory: string | null;
  credentials: GitCredentials | null;
}

export interface CloneOptions extends SourceLimits {
  seconds: number;
  resolveHost: ResolveHost;
  /** For tests: URLs of `file:`. */
  allowsFiles?: boolean;
}

export interface ClonedSource {
  /** 40 digits. */
  commit: string;
  /** For the log of the deploy: parts of the repository that were left out. */
  notes: string[];
}

const REF = /^(?![-+^/])(?!.*(?:\.\.|@\{))[^\s:*?~^\\[\p{Cc}]+$/u;
const COMMIT = /^[0-9a-f]{40}$/;
const LFS = 'version https://git-lfs.github.com/spec/v1';
const LFS_BYTES = { min: 100, max: 300 };
const NAMED = 3;
const SECRETS = 'Set the secret GIT_TOKEN of the environment (and GIT_USERNAME), or GIT_SSH_KEY for a URL that begins with ssh://.';
const KEPT_LINES = 20;
/** Of the operator: where certificates are. */
const INHERITED = ['PATH', 'GIT_SSL_CAINFO', 'GIT_SSL_CAPATH', 'SSL_CERT_FILE', 'SSL_CERT_DIR'];
const PROTOCOLS = 'https:http:ssh:git';

const SETTINGS = [
  'protocol.file.allow=never',
  'core.hooksPath=/dev/null',
  'core.fsmonitor=false',
  'core.symlinks=true',
  'core.autocrlf=false',
  'core.bigFileThreshold=16m',
  'credential.helper=',
  'fetch.recurseSubmodules=false',
  'gc.auto=0',
  'maintenance.auto=false',
  'pack.threads=1',
  'transfer.unpackLimit=1',
];

/**
 * Fetches one commit of a repository, and writes its files into an empty folder: no history, no `.git`, no submodules, no hooks. The repository
 * is hostile. Throws `source_invalid` with what to do, or the error of `resolveHost`. After an error the caller deletes the folder.
 */
export async function cloneSource(source: GitSource, folder: string, options: CloneOptions, signal: AbortSignal): Promise<ClonedSource> {
  if (source.ref !== null && !REF.test(source.ref)) throw sourceInvalid(`${JSON.stringify(source.ref)} is no branch, tag or commit.`);
  const subdirectory = safeParts(source.subdirectory ?? '').join('/');
  const work = await mkdtemp(`${folder}.git-`);
  try {
    const { url, settings, variables } = await gitRemote(
      source.url,
      source.credentials,
      work,
      options.resolveHost,
      options.allowsFiles === true,
    );
    const git = new Git(work, settings, variables, options, signal);
    await mkdir(path.join(work, 'home'));
    await git.run(['init', '--quiet', '--bare', '--template=']);
    await git.run(['fetch', '--quiet', '--depth=1', '--no-tags', '--end-of-options', url, source.ref ?? 'HEAD'], {
      explain: (lines) => explain(lines, source),
    });
    const commit = (await git.run(['rev-parse', '--verify', 'FETCH_HEAD^{commit}']))[0] ?? '';
    if (!COMMIT.test(commit)) throw sourceInvalid(`${JSON.stringify(source.ref)} names no commit.`);
    const tree = subdirectory === '' ? `${commit}^{tree}` : `${commit}:${subdirectory}`;
    const submodules = await listTree(git, tree, subdirectory, options);
    await git.run(['read-tree', tree]);
    await git.run(['--work-tree', folder, 'checkout-index', '--all', '--quiet']);
    const pointers = await lfsPointers(folder, await assertSource(folder, options, signal));
    return {
      commit,
      notes: [
        ...note(submodules, 'submodules are not fetched'),
        ...note(pointers, 'files are pointers of Git LFS, whose content is not fetched'),
      ],
    };
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

const note = (names: string[], what: string): string[] =>
  names.length === 0 ? [] : [`${names.length} ${what}: ${names.slice(0, NAMED).join(', ')}${names.length > NAMED ? ', …' : ''}`];

/** Refuses a tree over the limits before its files are written. Returns the paths of submodules. */
async function listTree(git: Git, tree: string, subdirectory: string, limits: SourceLimits): Promise<string[]> {
  const submodules: string[] = [];
  let [bytes, entries] = [0, 0];
  await git.run(['ls-tree', '-r', '-t', '--long', '--full-tree', tree], {
    onLine(line) {
      const [, mode = '', size = '', name = ''] = /^(\d+) \w+ [0-9a-f]+ +(\d+|-)\t(.*)$/s.exec(line) ?? [];
      entries += 1;
      bytes += Number(size) || 0;
      if (mode === '160000') submodules.push(name);
      if (entries > limits.maxEntries) throw tooManyEntries(limits);
      if (bytes > limits.maxBytes) throw tooManyBytes(limits);
    },
    explain: () => `The repository has no folder ${JSON.stringify(subdirectory)} at this commit.`,
  });
  return submodules;
}

/** Only a repository with .gitattributes uses LFS. */
async function lfsPointers(folder: string, entries: readonly SourceEntry[]): Promise<string[]> {
  const pointers: string[] = [];
  if (!entries.some(({ name }) => path.posix.basename(name) === '.gitattributes')) return pointers;
  for (const entry of entries) {
    if (entry.kind !== 'file' || entry.size < LFS_BYTES.min || entry.size > LFS_BYTES.max) continue;
    if ((await readFile(path.join(folder, entry.name), 'latin1')).startsWith(LFS)) pointers.push(entry.name);
  }
  return pointers;
}

/** What an author can do, from the last lines of `git fetch`. */
function explain(lines: readonly string[], { url, ref, credentials }: GitSource): string {
  const { host = url, pathname = '' }: Partial<URL> = URL.canParse(url) ? new URL(url) : {};
  // Without the address, whose words are not those of Git: a repository may be called "redirects".
  const text = lines
    .join('\n')
    .replaceAll(/\b[a-z]+:\/\/\S+/gi, '')
    .replaceAll(pathname, '');
  if (/couldn't find remote ref|not our ref|no such remote ref|unadvertised object/i.test(text))
    return ref === null
      ? 'The repository is empty.'
      : `The repository has no branch, tag or commit ${JSON.stringify(ref)}. A commit needs all 40 digits.`;
  if (/base from redirection|redirects followed|returned error: 30\d/i.test(text))
    return `${host} redirects to another address. Use the final URL of the repository.`;
  if (
    /authentication failed|could not read (?:Username|Password)|terminal prompts disabled|returned error: 40[13]|permission denied/i.test(
      text,
    )
  )
    return credentials === null
      ? `${host} asks for credentials: the repository is private, or does not exist. ${SECRETS}`
      : `${host} refuses the credentials of this repository. ${SECRETS}`;
  if (/not found|does not exist|returned error: 404|access denied or repository not exported/i.test(text))
    return `There is no repository at ${url}.`;
  const reason = lines.findLast((line) => /^(?:fatal|error|ssh):/.test(line)) ?? lines.at(-1) ?? 'Git gave no reason';
  return `The repository cannot be fetched: ${reason}`;
}

interface RunOptions {
  onLine?: (line: string) => void;
  /** The message of a failure, from the last lines of the output. */
  explain?: (lines: readonly string[]) => string;
}

class Git {
  readonly #work: string;
  readonly #settings: string[];
  readonly #variables: Record<string, string>;
  readonly #options: CloneOptions;
  readonly #signal: AbortSignal;
  readonly #deadline: number;

  constructor(work: string, settings: readonly string[], variables: Record<string, string>, options: CloneOptions, signal: AbortSignal) {
    this.#work = work;
    this.#settings = [...SETTINGS, ...settings];
    if (options.allowsFiles === true) this.#settings = this.#settings.filter((one) => one !== 'protocol.file.allow=never');
    this.#variables = variables;
    this.#options = options;
    this.#signal = signal;
    this.#deadline = Date.now() + options.seconds * 1_000;
  }

  /** The lines of its standard output. Throws `source_invalid` if it fails or takes too long, or the repository grows too large. */
  async run(args: readonly string[], { onLine, explain: reasonOf }: RunOptions = {}): Promise<string[]> {
    const lines: string[] = [];
    const errors: string[] = [];
    const stop = new AbortController();
    const end = await runCommand('git', [...this.#settings.flatMap((setting) => ['-c', setting]), ...args], {
      cwd: this.#work,
      env: this.#environment(),
      signal: AbortSignal.any([this.#signal, stop.signal]),
      timeoutMs: Math.max(1, this.#deadline - Date.now()),
      watch: () => this.#assertSize(),
      onLine(text, stream) {
        try {
          if (stream === 'stderr') errors.push(text);
          else if (onLine === undefined) lines.push(text);
          else onLine(text);
          if (errors.length > KEPT_LINES) errors.shift();
        } catch (error) {
          stop.abort(error);
        }
      },
    }).catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      throw new HostingError('hosting_unsupported', 'This server has no git. Ask its operator to install it, or upload the folder.');
    });
    if (end.kind === 'late') throw sourceInvalid(`The repository did not arrive within ${this.#options.seconds} s.`);
    if (end.kind === 'exit' && end.code === 0) return lines;
    throw sourceInvalid(reasonOf?.(errors) ?? `git ${args[0]} failed: ${errors.at(-1) ?? 'it gave no reason'}`);
  }

  async #assertSize(): Promise<void> {
    const { bytes } = await folderSize(path.join(this.#work, 'repository'), this.#options);
    if (bytes > this.#options.maxBytes) throw tooManyBytes(this.#options);
  }

  #environment(): Record<string, string> {
    const inherited = INHERITED.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]] as const]));
    return {
      ...Object.fromEntries(inherited),
      HOME: path.join(this.#work, 'home'),
      LC_ALL: 'C',
      GIT_DIR: path.join(this.#work, 'repository'),
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_CONFIG_GLOBAL: '/dev/null',
      GIT_TERMINAL_PROMPT: '0',
      GIT_ASKPASS: '/bin/false',
      SSH_ASKPASS: '/bin/false',
      GIT_LFS_SKIP_SMUDGE: '1',
      GIT_ALLOW_PROTOCOL: this.#options.allowsFiles === true ? `${PROTOCOLS}:file` : PROTOCOLS,
      ...this.#variables,
    };
  }
}
