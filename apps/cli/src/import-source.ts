import { createReadStream } from 'node:fs';
import { open, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import {
  detectFormat,
  importInspectArchive,
  importInspectJson,
  type Imported,
  importOpenai,
  importPalestra,
  importVerifiers,
  SNIFF_BYTES,
} from '@palestra/rollouts/import';
import type { ImportFormat } from '@palestra/protocol';
import { UsageError } from './settings.ts';

/** A JSON log is read as one string, whose length Node limits. */
const MAX_JSON_LOG_BYTES = 400 * 1024 * 1024;

export interface ImportRequest {
  file: string;
  format: ImportFormat | 'auto';
  runName: string | undefined;
  /** Inspect: the score to use as reward. */
  scorer: string | undefined;
}

/** The records of a file, one rollout each. Throws `UsageError` for an unknown format. */
export async function openImport({
  file,
  format: option,
  runName,
  scorer,
}: ImportRequest): Promise<{ format: ImportFormat; records: AsyncIterable<Imported> }> {
  const { mtimeMs, size } = await stat(file).catch((error: unknown) => {
    throw new UsageError(`Cannot read ${file}: ${(error as Error).message}`);
  });
  const head = await headOf(file);
  const format = option === 'auto' ? detectFormat(file, head) : option;
  if (format === null) throw new UsageError(`${file}: unknown format. Choose one with --format.`);
  // The time of the file, so that a repeated import sends the same events.
  const at = Math.trunc(mtimeMs);
  if (format === 'palestra')
    return { format, records: importPalestra(createReadStream(file), { at, ...(runName === undefined ? {} : { runName }) }) };
  if (runName === undefined) throw new UsageError(`${file}: the file has no run name. Pass --run.`);
  const options = { runName, at };
  if (format === 'openai') return { format, records: importOpenai(createReadStream(file), options) };
  if (format === 'verifiers')
    return { format, records: importVerifiers(createReadStream(file), { ...options, ...(await metadataBeside(file)) }) };
  const ofInspect = { ...options, ...(scorer === undefined ? {} : { scorer }) };
  if (head[0] === 0x50 && head[1] === 0x4b) return { format, records: importInspectArchive(file, ofInspect) };
  if (size > MAX_JSON_LOG_BYTES) throw new UsageError(`${file}: the JSON log is too large. Convert it with: inspect log convert --to eval`);
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

/** The metadata file of verifiers beside the results, with environment, model and sampling. */
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
