/** Converts foreign formats to upload events (`POST /v1/rollouts`). Needs Node, because it reads archives. Sends nothing. */
export { SNIFF_BYTES, detectFormat } from './detect.ts';
export type { Imported } from './imported.ts';
export { importInspectArchive, importInspectJson } from './inspect/inspect.ts';
export { readJson, RecordError } from './json-lines.ts';
export { importOpenai } from './openai.ts';
export {
  eventsOfTrace,
  type NamedTraces,
  OtlpShapeError,
  readTraces,
  type ReadTraces,
  type StoredMessages,
  type TracedRollout,
} from './otlp/otlp.ts';
export { importPalestra } from './palestra.ts';
export { importVerifiers } from './verifiers.ts';
