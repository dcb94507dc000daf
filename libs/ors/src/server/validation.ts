/** Moved to the protocol library, where the environment kit's own server checks the same bodies. */
export {
  parseBody,
  readSplitBody,
  readTaskBody,
  readTaskRangeBody,
  readCreateSessionBody,
  readCreateBody,
  readCallBody,
  readScoreGroupBody,
} from '@palestra/protocol';
