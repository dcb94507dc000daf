import { createReadStream } from 'node:fs';
import { open, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import {
  detectFormat,
  importInspectArchive,
  importInspectJson,
  type Imported,
  type ImportFormat,
  importOpenai,
  importPalestra,
  importVerifiers,
  SNIFF_BYTES,
} from '@palestra/rollouts/import';
import { UsageError } from './settings.ts';

/** A JSON log is one text in memory; Node holds no longer one. */
const MAX_JSON_LOG_BYTES = 400 * 1024 * 1024;

export interface ImportRequest {
  file: string;
  format: ImportFormat | 'auto';
  runName: string | undefined;
  /** Inspect: which score is the reward. */
  scorer: string | undefined;
}

/** The records of a file, one rollout each. Throws `UsageError` when the file is of no format that we read. */
export async function openImport({
  file,
  format: wanted,
  runName,
  scorer,
}: ImportRequest): Promise<{ format: ImportFormat; records: AsyncIterable<Imported> }> {
  const { mtimeMs, size } = await stat(file).catch((error: unknown) => {
    throw new UsageError(`cannot read ${file}: ${(error as Error).message}`);
  });
  const head = await headOf(file);
  const format = wanted === 'auto' ? detectFormat(file, head) : wanted;
  if (format === null) throw new UsageError(`${file}: its format cannot be told; give one with --format`);
  // The file's own time: importing it again sends the same.
  const at = Math.trunc(mtimeMs);
  if (format === 'palestra')
    return { format, records: importPalestra(createReadStream(file), { at, ...(runName === undefined ? {} : { runName }) }) };
  if (runName === undefined) throw new UsageError(`${file}: --run is needed, the file names no run`);
  const options = { runName, at };
  if (format === 'openai') return { format, records: importOpenai(createReadStream(file), options) };
  if (format === 'verifiers')
    return { format, records: importVerifiers(createReadStream(file), { ...options, ...(await metadataBeside(file)) }) };
  const ofInspect = { ...options, ...(scorer === undefined ? {} : { scorer }) };
  if (head[0] === 0x50 && head[1] === 0x4b) return { format, records: importInspectArchive(file, ofInspect) };
  if (size > MAX_JSON_LOG_BYTES)
    throw new UsageError(`${file}: a JSON log of this size is not read; convert it with: inspect log convert --to eval`);
  return { format, records: jsonLog(file, ofInspect) };
}

async function* jsonLog(file: string, options: Parameters<typeof importInspectJson>[1]): AsyncGenerator<Imported> {
  yield* importInspectJson(await readFile(file, 'utf8'), options);
}

async function headOf(file: string): Promise<Uint8Array> {
  const handle = await open(file);
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(SNIFF_BYTES), 0, SNIFF_BYTES, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}

/** verifiers writes the environment, the model and the sampling of its results into a file beside them. */
async function metadataBeside(file: string): Promise<{ metadata?: Record<string, unknown> }> {
  const text = await readFile(path.join(path.dirname(file), 'metadata.json'), 'utf8').catch(() => null);
  if (text === null) return {};
  try {
    const metadata = JSON.parse(text) as unknown;
    return typeof metadata === 'object' && metadata !== null && !Array.isArray(metadata)
      ? { metadata: metadata as Record<string, unknown> }
      : {};
  } catch {
    return {};
  }
}
