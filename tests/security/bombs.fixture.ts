import { randomUUID } from 'node:crypto';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { defineEnvironment, type Environment, tool } from '@palestra/environment-kit';
import { parquetWriteBuffer } from 'hyparquet-writer';

/** Inputs that cost little to send and much to read. */

const property = (args: object) => JSON.stringify(args);
const nested = (depth: number): object => (depth === 0 ? {} : { a: nested(depth - 1) });
const ref = (name: string) => ({ $ref: `#/$defs/${name}` });
const chain = (length: number, keyword: string) =>
  Object.fromEntries([
    ...Array.from({ length }, (_, at) => [`d${at}`, { [keyword]: [ref(`d${at + 1}`), ref(`d${at + 1}`)] }]),
    [`d${length}`, { type: 'string' }],
  ]) as object;

/** Schemas of tools by their names, the arguments of a call, and what checking them gives. */
export const hostileSchemas: Record<string, { schema: object; args: string; gives: 'answer' | 'too_expensive' }> = {
  // Compiling or checking visits 2^36 schemas.
  doubling: {
    schema: { type: 'object', properties: { x: ref('d0') }, $defs: chain(36, 'anyOf') },
    args: property({ x: 1 }),
    gives: 'too_expensive',
  },
  // Checking arguments of depth 40 visits 2^40 pairs of schema and value.
  recursion: {
    schema: { type: 'object', allOf: [{ properties: { a: { $ref: '#' } } }, { properties: { a: { $ref: '#' } } }] },
    args: property(nested(40)),
    gives: 'too_expensive',
  },
  // Compares each of 100,000 lists with each other.
  unique: {
    schema: { type: 'object', properties: { a: { type: 'array', uniqueItems: true } } },
    args: property({ a: Array.from({ length: 100_000 }, (_, at) => [at]) }),
    gives: 'too_expensive',
  },
  // Backtracks for 2^5000 steps where regular expressions are JavaScript's own.
  pattern: {
    schema: { type: 'object', properties: { a: { type: 'string', pattern: '^(a+)+$' } } },
    args: property({ a: `${'a'.repeat(5_000)}!` }),
    gives: 'answer',
  },
};

/** A rollout with one call of a tool, to be checked against the schema of its environment. */
export function toolCallEvents(environment: string, runName: string, tool: string, content: string): object[] {
  const id = randomUUID();
  const base = { timestamp: 1, metadata: {} };
  const message = { eventType: 'message', eventId: randomUUID(), rolloutEventId: id, index: 0, type: 'tool_call', isFinished: true };
  return [
    { ...base, eventType: 'rollout', eventId: id, runName, environment, rolloutName: 'x' },
    { ...base, ...message, name: tool, callId: '1', content },
  ];
}

/** An environment whose server publishes the hostile schemas. */
export const hostileEnvironment = (name: string): Environment =>
  defineEnvironment({
    name,
    splits: ['train'],
    tasks: () => [{}],
    prompt: () => 'x',
    tools: Object.fromEntries(
      Object.entries(hostileSchemas).map(([at, { schema }]) => [
        at,
        tool({ description: '', inputSchema: schema as never, run: () => 'done' }),
      ]),
    ),
  });

const MIB = 1024 * 1024;
type Compressors = Record<'BROTLI' | 'GZIP', (bytes: Uint8Array) => Uint8Array>;
const fast = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } };
/** As honest as a writer can be. */
const compressors: Compressors = {
  BROTLI: (bytes) => brotliCompressSync(bytes, fast),
  GZIP: (bytes) => gzipSync(bytes, { level: 1 }),
};
/** Whatever was to be compressed, the page decompresses to 300 MiB, and its header does not say so. */
const lying: Compressors = {
  BROTLI: () => brotliCompressSync(Buffer.alloc(300 * MIB), fast),
  GZIP: () => gzipSync(Buffer.alloc(300 * MIB), { level: 1 }),
};
const file = (data: string[], codec: 'BROTLI' | 'GZIP' | 'SNAPPY', using: Compressors = compressors) =>
  new Uint8Array(
    parquetWriteBuffer({ columnData: [{ name: 'task_spec', data, encoding: 'PLAIN' }], codec, compressors: using, statistics: false }),
  );

/** The little-endian footer length, and the magic number. */
function withFooterLength(length: number): Uint8Array {
  const bytes = file(['{}'], 'SNAPPY');
  new DataView(bytes.buffer).setUint32(bytes.length - 8, length, true);
  return bytes;
}

export const parquetBombs: Record<string, () => Uint8Array> = {
  'a brotli page of 100 MiB': () => file([`{"a": "${'a'.repeat(100 * MIB)}"}`], 'BROTLI'),
  'a brotli page that hides its size': () => file(['{}'], 'BROTLI', lying),
  'a gzip page that hides its size': () => file(['{}'], 'GZIP', lying),
  'a footer longer than the file': () => withFooterLength(2 ** 31),
  'rows of 50 MiB': () => file(['{}', `{"a": "${'a'.repeat(50 * MIB)}"}`], 'SNAPPY'),
};
