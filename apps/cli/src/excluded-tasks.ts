import { createReadStream, existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { UsageError } from './server-settings.ts';

export interface ExcludedTasks {
  exclude: { environment: string; split: string }[];
  /** Content hashes (`task_key`). */
  excludeKeys: string[];
}

const KEY = /^[0-9a-f]{64}$/;

/** What the values of `--exclude` name: splits, and files of rows that `prepare-tasks` wrote. Throws `UsageError`. */
export async function readExcluded(values: string[]): Promise<ExcludedTasks> {
  const exclude: ExcludedTasks['exclude'] = [];
  const keys = new Set<string>();
  for (const value of values) {
    const [, environment, split] = /^([^/:\s]+\/[^/:\s]+):([^/\s]+)$/.exec(value) ?? [];
    if (existsSync(value)) for await (const key of keysOfFile(value)) keys.add(key);
    else if (environment && split) exclude.push({ environment, split });
    else throw new UsageError(`Invalid value "${value}" of --exclude. Expected owner/name:split, or a file of rows with a task_key.`);
  }
  return { exclude, excludeKeys: [...keys] };
}

async function* keysOfFile(file: string): AsyncGenerator<string> {
  let number = 0;
  for await (const line of createInterface({ input: createReadStream(file), crlfDelay: Infinity })) {
    number += 1;
    if (line.trim() === '') continue;
    const key = keyOfLine(line.trim());
    if (key === null) {
      throw new UsageError(
        `${file}:${number} has no task_key. Expected JSON lines as prepare-tasks writes them, except in SkyRL's text format.`,
      );
    }
    yield key;
  }
}

/** A bare key, or that of a row in any format. */
function keyOfLine(line: string): string | null {
  if (KEY.test(line)) return line;
  const row = objectOf(line);
  const metadata = objectOf(row?.['metadata']);
  const verifier = objectOf(row?.['verifier_metadata']);
  const places = [row, row?.['palestra'], metadata, metadata?.['palestra'], verifier?.['palestra'], row?.['label']];
  for (const place of places) {
    const key = objectOf(place)?.['task_key'];
    if (typeof key === 'string' && KEY.test(key)) return key;
  }
  return null;
}

/** An object, or JSON text of one. */
function objectOf(value: unknown): Record<string, unknown> | null {
  if (typeof value === 'object' && value !== null) return value as Record<string, unknown>;
  if (typeof value !== 'string' || !value.startsWith('{')) return null;
  try {
    return JSON.parse(value) as Record<string, unknown>;
  } catch {
    return null;
  }
}
