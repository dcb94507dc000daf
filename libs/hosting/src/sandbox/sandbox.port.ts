import type { Readable } from 'node:stream';
import type { Egress, Resources } from '../provider/provider.port.ts';
import type { NetworkRule } from './network-policy.ts';

/** Which addresses a sandbox may connect to. `policy`: rules for each HTTP request, in order; presets are already rules. */
export type SandboxNetwork = Egress | { kind: 'policy'; rules: readonly NetworkRule[]; enforce: boolean };

/** A container beside the sandbox. It has the network of the sandbox: both find each other at 127.0.0.1. */
export interface SandboxSidecar {
  name: string;
  image: string;
  /** In the place of the image's entrypoint and arguments; null: those of the image. */
  command: readonly string[] | null;
  args: readonly string[] | null;
  variables: Readonly<Record<string, string>>;
}

/** A container in which commands run. The program of its image does not run. */
export interface SandboxSpec {
  /** Letters, digits and hyphens, at most 64. */
  id: string;
  /** `owner/name`, for people who look at the engine. */
  environment: string;
  /** A name that the engine has or can pull. */
  image: string;
  /** Of the sandbox, and of each sidecar. The disk is not limited. */
  resources: Pick<Resources, 'cpus' | 'memoryMb' | 'pids'>;
  variables: Readonly<Record<string, string>>;
  network: SandboxNetwork;
  sidecars: readonly SandboxSidecar[];
  /** Lines of /etc/hosts, also of the sidecars. */
  hostAliases: readonly { ip: string; hostnames: readonly string[] }[];
}

export interface ExecRequest {
  /** A program with its arguments. It gets the standard input, if there is one, and an end of file. */
  command: readonly string[];
  stdin?: Buffer;
  /** After it the command and all processes that it began in its group are killed. */
  timeoutMs: number;
  /** What is written beyond it is read and thrown away. */
  maxBytes: number;
  /** Only the standard output; default: also the errors, in the order in which they come. */
  stdoutOnly?: boolean;
  variables?: Readonly<Record<string, string>>;
  /** Name or number; default: that of the image. */
  user?: string;
  /** Default: that of the image. */
  folder?: string;
}

export interface ExecResult {
  /** 124 after the timeout, 127 if there is no such program, above 128 for a signal. */
  exitCode: number;
  output: Buffer;
  timedOut: boolean;
  /** It wrote more than `maxBytes`. */
  truncated: boolean;
}

/** `other`: a folder, a device, a pipe. A symbolic link is not followed. */
export type SandboxFile = { kind: 'file'; size: number } | { kind: 'symlink' } | { kind: 'other' };

export interface RunningSandbox {
  id: string;
  /** Its container runs. */
  running: boolean;
}

/**
 * Containers for commands, on an engine that several processes of this service share: sandboxes are found by their id. Errors are
 * `HostingError`s: `engine_unavailable` when nothing is known, `build_failed` for an image that is not there, `sandbox_lost` when the sandbox
 * is gone or has ended, `hosting_unsupported` for what cannot be enforced, `instance_failed` for everything else.
 */
export interface SandboxProvider {
  /** Resolves when commands can run. Removes what it created if it fails. */
  create(spec: SandboxSpec, signal: AbortSignal): Promise<void>;
  /** Runs a command once. When the signal aborts, the command may go on. */
  exec(id: string, request: ExecRequest, signal: AbortSignal): Promise<ExecResult>;
  /** Null if there is no such file. Paths are absolute. */
  stat(id: string, path: string, signal: AbortSignal): Promise<SandboxFile | null>;
  /** At most `length` bytes of a file from `offset`; fewer at its end. */
  read(id: string, path: string, range: { offset: number; length: number }, signal: AbortSignal): Promise<Buffer>;
  /** Writes a file, whose folder is created. */
  write(id: string, path: string, content: Buffer, signal: AbortSignal): Promise<void>;
  /** Unpacks a tar archive in a folder that exists. */
  upload(id: string, folder: string, archive: Readable | Buffer, signal: AbortSignal): Promise<void>;
  /** A file or folder as a tar archive, whose first name is that of `path`. */
  download(id: string, path: string, signal: AbortSignal): Promise<Readable>;
  /**
   * Replaces the rules. When it resolves, they are in force, and all connections of the old ones are closed. Rejects with `hosting_unsupported`
   * for a sandbox that was created with `none`.
   */
  setNetwork(id: string, network: SandboxNetwork, signal: AbortSignal): Promise<void>;
  /** Removes everything that belongs to it, also while it runs. Resolves also if there is none. */
  remove(id: string, signal: AbortSignal): Promise<void>;
  /** All sandboxes of this installation, found by label, also incomplete ones. */
  list(signal: AbortSignal): Promise<RunningSandbox[]>;
}
