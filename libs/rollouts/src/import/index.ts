/** Foreign formats as upload events (`POST /v1/rollouts`). For Node: it reads archives. Nothing here sends anything. */
export * from './detect.ts';
export type { Imported, ImportOptions } from './imported.ts';
export { importInspectArchive, importInspectJson, type InspectOptions } from './inspect/inspect.ts';
export { ARCHIVE_LIMITS, ArchiveError, type ArchiveLimits } from './inspect/inspect-archive.ts';
export { RecordError } from './json-lines.ts';
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
export { importPalestra, type PalestraOptions } from './palestra.ts';
export { importVerifiers, type VerifiersOptions } from './verifiers.ts';
