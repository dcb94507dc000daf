import type { SandboxProvider } from '../sandbox/sandbox.port.ts';

/** Where instances run. */
export type ProviderName = 'process' | 'docker' | 'kubernetes' | 'remote';

/** How strongly the code of an environment is separated from the machine, weakest first. `sandbox`: gVisor; `vm`: Kata or similar. */
export const ISOLATION_LEVELS = ['none', 'container', 'sandbox', 'vm'] as const;
export type Isolation = (typeof ISOLATION_LEVELS)[number];

/** Which addresses an instance may connect to. `hosts`: names, of which the first label may be `*`. */
export type Egress = { kind: 'open' } | { kind: 'none' } | { kind: 'hosts'; hosts: readonly string[] };

/** What a provider enforces. A deploy that needs more is refused. */
export interface Capabilities {
  isolation: readonly Isolation[];
  egress: readonly Egress['kind'][];
  gpus: boolean;
  /** Limits of processors, memory and processes are enforced. */
  limits: boolean;
  /** Limits that are not enforced although the others are; default: none. */
  unlimited?: readonly (keyof Resources)[];
  /** Megabytes that one instance may have; null: unknown. */
  maxMemoryMb: number | null;
  /** It builds folders. Images by name need no build. */
  builds: boolean;
  /** It has `warmPools` now: sessions of a version whose `concurrency` is 1 each get an instance that serves no other. */
  perSession?: boolean;
}

/** Limits of one instance. `diskMb`: of its writable temporary files. */
export interface Resources {
  cpus: number;
  memoryMb: number;
  pids: number;
  diskMb: number;
  gpus: number;
}

/**
 * A program and its arguments, in which `fillIn` replaces `{host}`, `{port}` and `{kit}`. The commands `python` and `node` are the interpreters
 * for which the artifact was built.
 */
export interface ServerCommand {
  command: string;
  args: readonly string[];
  /** Relative to the artifact's folder. */
  cwd: string;
  variables: Readonly<Record<string, string>>;
}

/** The result of a build: immutable, and named by its digest (`sha256:...`). */
export type Artifact =
  | { kind: 'image'; digest: string; image: string; port: number; command?: readonly string[] }
  | { kind: 'folder'; digest: string; folder: string; server: ServerCommand }
  /** Tasks of Harbor with their images; `folder` has the tests. */
  | { kind: 'harbor'; digest: string; folder: string }
  | { kind: 'urls'; digest: string; urls: readonly string[] };

/** One instance that should run. */
export interface InstanceSpec {
  id: string;
  versionId: string;
  /** `owner/name`, for people who look at the engine. */
  environment: string;
  artifact: Artifact;
  resources: Resources;
  egress: Egress;
  isolation: Isolation;
  variables: Readonly<Record<string, string>>;
  /** Mounted as files, never as variables. */
  secrets: Readonly<Record<string, string>>;
  /** It serves one session. Where the engine has warm pools it comes from that of its version. */
  single?: boolean;
}

/** What the instances of a warm pool have in common. */
export type PoolSpec = Omit<InstanceSpec, 'id' | 'single'>;

/** Unused instances that an engine keeps started and replaces when one is taken. At most one pool of a version; every method is safe to repeat. */
export interface WarmPools {
  /** Ids of the versions that have one. */
  list(signal: AbortSignal): Promise<string[]>;
  /** Makes the pool of a version like this. With 0 replicas nothing is kept started, and instances of the version start when they are taken. */
  keep(spec: PoolSpec, replicas: number, signal: AbortSignal): Promise<void>;
  /** Removes the pool of a version with its unused instances. Instances that were taken from it go on. */
  remove(versionId: string, signal: AbortSignal): Promise<void>;
}

/** `running`: its process runs, and may not listen yet. */
export type InstanceState = 'starting' | 'running' | 'exited';

/** An instance as its engine shows it. */
export interface RunningInstance {
  id: string;
  versionId: string;
  state: InstanceState;
  /** Base URL, reachable from this service; null until it is known. */
  endpoint: string | null;
  /** How it ended, for people; null while it runs. */
  exit: { code: number | null; reason: string } | null;
  /** Why it does not run yet, for people; missing when nothing is unusual. */
  waiting?: string;
  startedAt: Date | null;
  /** How often the engine started it again. */
  restarts: number;
}

export interface LogLine {
  at: Date;
  stream: 'stdout' | 'stderr';
  /** Without line end, at most `MAX_LINE_CHARS` characters. */
  text: string;
}
export const MAX_LINE_CHARS = 8_192;

/** Processors (1 = one core), megabytes and processes that an instance uses now. */
export interface InstanceStats {
  cpus: number;
  memoryMb: number;
  pids: number | null;
}

/** What a builder is given: a folder of checked, unpacked source, or an image by name. */
export interface BuildRequest {
  /** Names what is built, for labels and temporary names. */
  deployId: string;
  /** Digest of the source; equal sources give equal artifacts, which may come from a cache. */
  sourceDigest: string;
  source: { kind: 'folder'; folder: string; plan: BuildPlan } | { kind: 'image'; image: string; port: number | null };
  /** Builds with an equal one may use layers of each other, such as those of one environment; missing: the engine decides. */
  cacheKey?: string;
  /** Build arguments of a Dockerfile. */
  buildArguments: Readonly<Record<string, string>>;
  limits: BuildLimits;
  /** How instances will run. A build of Harbor tasks needs it, because it runs their solutions and tests. */
  run?: RunSettings;
}

export type RunSettings = Pick<InstanceSpec, 'resources' | 'egress' | 'isolation' | 'variables' | 'secrets'>;

export interface BuildLimits {
  seconds: number;
  memoryMb: number;
  /** Bytes of the finished artifact. */
  maxBytes: number;
  network: boolean;
}

/** How a folder becomes a server; `detectPlan` finds it. Paths are relative to the folder, and inside it. */
export type BuildPlan =
  | { kind: 'dockerfile'; dockerfile: string; port: number | null; variables: Readonly<Record<string, string>> }
  | {
      kind: 'python';
      /** Files that `uv` or `pip` installs from, in this order: `pyproject.toml` for the folder itself, else lists of requirements. */
      install: readonly string[];
      /** Packages beside those of the author, for example `uvicorn`. */
      packages: readonly string[];
      /** The file that the server runs, relative: its syntax is checked before packages are installed. Undefined if it is not known. */
      entry?: string;
      server: ServerCommand;
    }
  | { kind: 'node'; install: boolean; server: ServerCommand }
  /** `tasks`: their folders; `.` is the folder itself. */
  | { kind: 'harbor'; tasks: readonly string[] };

/**
 * An engine that runs instances. Every method is safe to repeat, also by another process after a crash: instances are found by their id.
 * Errors are `HostingError`s; `engine_unavailable` means that nothing is known and nothing was changed.
 */
export interface Provider {
  readonly name: ProviderName;
  /** Absent where containers for commands cannot run. */
  readonly sandboxes?: SandboxProvider;
  /** Usable where `Capabilities.perSession` says so; absent where the engine never has them. */
  readonly warmPools?: WarmPools;
  capabilities(signal: AbortSignal): Promise<Capabilities>;
  /** Builds, or finds the equal artifact of an earlier build. `onLine` gets the log as it is written. Rejects with `build_failed`. */
  build(request: BuildRequest, onLine: (line: LogLine) => void, signal: AbortSignal): Promise<Artifact>;
  /** Whether the artifact is still there: somebody may have deleted its image or folder. Missing where it is elsewhere, as in a registry. */
  has?(artifact: Artifact, signal: AbortSignal): Promise<boolean>;
  /** Starts the instance unless it exists. Resolves when the engine accepted it; it may not listen yet. */
  ensure(spec: InstanceSpec, signal: AbortSignal): Promise<RunningInstance>;
  /** All instances of this installation, also ended ones. */
  list(signal: AbortSignal): Promise<RunningInstance[]>;
  /** SIGTERM, after the grace period SIGKILL; removes everything that belongs to it. Resolves when it is gone. */
  remove(id: string, graceMs: number, signal: AbortSignal): Promise<void>;
  /** Its log from `since`, then as it is written until the signal aborts or the instance is gone. */
  logs(id: string, since: Date | null, signal: AbortSignal): AsyncIterable<LogLine>;
  /** Null when it does not run. */
  stats(id: string, signal: AbortSignal): Promise<InstanceStats | null>;
  /** Deletes artifacts that no version of `keep` (digests) names. */
  prune(keep: ReadonlySet<string>, signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

/** Where a server must listen. */
export interface ServerAddress {
  host: string;
  port: number;
  /** Path of the program that serves modules of the kit, `kitServerFile()`. An image that serves such a module has a copy. */
  kit: string;
}

/** Replaces `{host}`, `{port}` and `{kit}` in an argument or variable. */
export const fillIn = (text: string, address: ServerAddress): string =>
  text.replaceAll(/\{(host|port|kit)\}/g, (_, name: keyof ServerAddress) => String(address[name]));
