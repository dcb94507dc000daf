/** Writes and reads the messages of a sealed rollout as one object. Needs Node, because it compresses. Stores nothing. */
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
