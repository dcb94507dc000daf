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
  readJson,
  SNIFF_BYTES,
} from '@palestra/rollouts/import';
import { IMPORT_FORMATS, type ImportFormat, isObject, type JsonObject } from '@palestra/protocol';
import { printable } from './printable.ts';
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

/** A file that can be read. `records`: one rollout each. */
export interface ImportSource {
  file: string;
  format: ImportFormat;
  records(): AsyncIterable<Imported>;
}

/** Throws `UsageError` for a file that cannot be read, and for an unknown format. */
export async function findImport({ file, format: option, runName, scorer }: ImportRequest): Promise<ImportSource> {
  const cannotRead = (error: unknown) => {
    throw new UsageError(`Cannot read ${file}: ${(error as Error).message}`);
  };
  const found = await stat(file).catch(cannotRead);
  if (!found.isFile()) throw new UsageError(`${file} is not a file. Save the output of another program to a file first.`);
  const { mtimeMs, size } = found;
  const head = await headOf(file).catch(cannotRead);
  const format = option === 'auto' ? detectFormat(file, head) : option;
  if (format === null) throw new UsageError(unknownFormat(file, head));
  // The time of the file, so that a repeated import sends the same events.
  const at = Math.trunc(mtimeMs);
  if (format === 'palestra') {
    const palestra = { at, ...(runName === undefined ? {} : { runName }) };
    return { file, format, records: () => importPalestra(createReadStream(file), palestra) };
  }
  if (runName === undefined) throw new UsageError(`${file}: the file has no run name. Pass --run.`);
  const options = { runName, at };
  if (format === 'openai') return { file, format, records: () => importOpenai(createReadStream(file), options) };
  if (format === 'verifiers') {
    const metadata = await metadataBeside(file);
    return { file, format, records: () => importVerifiers(createReadStream(file), { ...options, ...metadata }) };
  }
  const ofInspect = { ...options, ...(scorer === undefined ? {} : { scorer }) };
  if (head[0] === 0x50 && head[1] === 0x4b) return { file, format, records: () => importInspectArchive(file, ofInspect) };
  if (size > MAX_JSON_LOG_BYTES) throw new UsageError(`${file}: the JSON log is too large. Convert it with: inspect log convert --to eval`);
  return { file, format, records: () => jsonLog(file, ofInspect) };
}

/** Of the first line. */
const MAX_SHOWN = 80;

function unknownFormat(file: string, head: Uint8Array): string {
  if (head.length === 0) return `${file} is empty.`;
  if (head[0] === 0x1f && head[1] === 0x8b) return `${file} is compressed. Unpack it first, for example with gunzip.`;
  const line = new TextDecoder().decode(head).trimStart().split('\n', 1)[0]!;
  const begins = printable(line.length > MAX_SHOWN ? `${line.slice(0, MAX_SHOWN)}...` : line.trimEnd());
  return `${file}: unknown format. Choose one with --format: ${IMPORT_FORMATS.join(', ')}. The file begins with: ${begins}`;
}

async function* jsonLog(file: string, options: Parameters<typeof importInspectJson>[1]): AsyncGenerator<Imported> {
  yield* importInspectJson(textOf(await readFile(file)), options);
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

/** Without a byte order mark. */
const textOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

/** The metadata file of verifiers beside the results, with environment, model and sampling. */
async function metadataBeside(file: string): Promise<{ metadata?: JsonObject }> {
  const bytes = await readFile(path.join(path.dirname(file), 'metadata.json')).catch(() => null);
  if (bytes === null) return {};
  try {
    // Python writes a mean of nothing as NaN.
    const metadata = readJson(textOf(bytes));
    return isObject(metadata) ? { metadata } : {};
  } catch {
    return {};
  }
}
