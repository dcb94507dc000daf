export { NORMALISER_VERSION, type RawRollout, type NormalisedRollout, normaliseRollout } from './normalise.ts';
export { ROLLOUT_FLAGS, type RolloutFlag, rolloutFlagNames } from './rollout-flags.ts';
export { type ReadStart, type ReadMessage, type ReadEvent, type ReadBatch, BatchShapeError, readBatch } from './events/event-reader.ts';
export { missingIndexes, missingRanges } from './events/gaps.ts';
export { MESSAGE_FLAGS, messageFlags } from './events/message-flags.ts';
export { type MessageSkeleton, skeletonOf } from './events/message-skeleton.ts';
export { errorLine, normaliseError, READ_PART } from './failure/error-text.ts';
export {
  type ErrorMessage,
  type FailureCause,
  type FailurePoint,
  failureCause,
  failurePoint,
  reportedText,
  textOfError,
} from './failure/failure-cause.ts';
export { groupKeyOf, taskOfVariant } from './fill-rules/group-key.ts';
export { taskKeyOf } from './fill-rules/task-key.ts';
export { canonicalArgsHash } from './json/canonical-json.ts';
export { cutText, parseTolerant, type TolerantJson } from './json/tolerant-json.ts';
export { isFalseZero } from './ledger/false-zero.ts';
export type { LedgerCall, LedgerDifference, UploadedCall } from './ledger/ledger-alignment.ts';
export { type ClaimedRollout, type LedgerMatch, type LedgerSession, matchLedger } from './ledger/ledger-match.ts';
export { type CallMessage, uploadedCalls } from './ledger/uploaded-calls.ts';
export { LIVE_MS, STALE_MS, rolloutState } from './outcome/rollout-state.ts';
export { type TrainedRewardInput, trainedReward } from './outcome/trained-reward.ts';
export { nameRegexProblem, matchName } from './provenance/name-regex.ts';
export { type FieldProvenance, provenanceShift, unpackProvenance, withProvenance } from './provenance/provenance.ts';
export type { RunSettings } from './provenance/run-settings.ts';
export { inferSteps } from './steps/step-inference.ts';
