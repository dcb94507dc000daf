import { readFile, rename, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';

/** What `instance-main` is told. */
export interface InstanceOrder {
  id: string;
  versionId: string;
  environment: string;
  /** Of the artifact. */
  digest: string;
  host: string;
  kit: string;
  command: string;
  /** With placeholders, as in `ServerCommand`. */
  args: readonly string[];
  cwd: string;
  variables: Readonly<Record<string, string>>;
}

/** Written by `instance-main` when it starts the server, and again for another port. `pid`: of itself, the leader of the session. */
export interface InstanceRecord {
  pid: number;
  startTicks: number;
  bootId: string;
  port: number;
  startedAt: string;
}

/** Written when the server ended. */
export interface InstanceExit {
  code: number | null;
  reason: string;
}

/** One line of `log`: milliseconds, stream, text. */
export type StoredLine = [at: number, stream: 'o' | 'e', text: string];

export const FILES = {
  order: 'order.json',
  record: 'record.json',
  exit: 'exit.json',
  log: 'log',
  olderLog: 'log.1',
  secrets: 'secrets',
} as const;
/** Names of the variables by which a process is found again. */
export const INSTANCE_VARIABLE = 'PALESTRA_INSTANCE';
export const FOLDER_VARIABLE = 'PALESTRA_INSTANCE_FOLDER';

/** The program `instance-main.js` of this package. */
export const instanceProgram = (): string => createRequire(import.meta.url).resolve('@palestra/hosting/instance');

/** Null if there is no such file, and for one that the machine cut when it lost power: such an instance has not started, or has ended. */
export async function readJson<T>(folder: string, name: string): Promise<T | null> {
  const text = await readFile(path.join(folder, name), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  try {
    return text === null ? null : (JSON.parse(text) as T);
  } catch {
    return null;
  }
}

/** Whole or not at all, also if this process is killed. */
export async function writeJson(folder: string, name: string, value: unknown): Promise<void> {
  const file = path.join(folder, name);
  await writeFile(`${file}.new`, JSON.stringify(value), { mode: 0o600 });
  await rename(`${file}.new`, file);
}
