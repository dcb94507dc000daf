export * from './normalise.ts';
export * from './rollout-flags.ts';
export * from './events/event-reader.ts';
export { missingIndexes, missingRanges } from './events/gaps.ts';
export * from './events/message-flags.ts';
export { type MessageSkeleton, skeletonOf } from './events/message-skeleton.ts';
export * from './fill-rules/group-key.ts';
export * from './fill-rules/task-key.ts';
export { canonicalArgsHash } from './json/canonical-json.ts';
export { cutText, parseTolerant, type TolerantJson } from './json/tolerant-json.ts';
export * from './ledger/false-zero.ts';
export type { LedgerCall, LedgerDifference, UploadedCall } from './ledger/ledger-alignment.ts';
export { type ClaimedRollout, type LedgerMatch, type LedgerSession, type MatchedCall, matchLedger } from './ledger/ledger-match.ts';
export * from './ledger/uploaded-calls.ts';
export * from './outcome/rollout-state.ts';
export * from './outcome/trained-reward.ts';
export * from './provenance/name-regex.ts';
export {
  type FieldProvenance,
  provenanceShift,
  type RolloutProvenance,
  unpackProvenance,
  withProvenance,
} from './provenance/provenance.ts';
export * from './provenance/run-settings.ts';
export * from './steps/step-inference.ts';
