/** A sealed rollout's messages as one object, written and read. For Node: it compresses. Nothing here stores anything. */
export {
  TRANSCRIPT_EXTENSION,
  TRANSCRIPT_TYPE,
  CHUNK_MESSAGES,
  CHUNK_CHARACTERS,
  type TranscriptMessage,
  type TranscriptChunk,
  type TranscriptLine,
  TranscriptError,
  compareMessages,
  TranscriptEncoder,
  type TranscriptRange,
  rangeOf,
  splitRanges,
  decodeLines,
} from './transcript.ts';
export { mayHold, wantedFingerprints } from './event-fingerprints.ts';
