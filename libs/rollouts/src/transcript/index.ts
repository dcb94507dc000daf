/** Writes and reads the messages of sealed rollouts. Needs Node, because it compresses. Stores nothing. */
export {
  TRANSCRIPT_EXTENSION,
  TRANSCRIPT_TYPE,
  CHUNK_MESSAGES,
  CHUNK_CHARACTERS,
  type TranscriptMessage,
  type TranscriptChunk,
  chunksText,
  chunksOf,
  type TranscriptLine,
  TranscriptError,
  compareMessages,
  TranscriptEncoder,
  type TranscriptRange,
  rangeOf,
  splitRanges,
  decodeLines,
  recodeChunk,
  withRolloutId,
} from './transcript.ts';
export { mayHold, wantedFingerprints } from './event-fingerprints.ts';
