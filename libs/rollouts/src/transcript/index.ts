/** A sealed rollout's messages as one object, written and read. For Node: it compresses. Nothing here stores anything. */
export * from './transcript.ts';
export { mayHold, wantedFingerprints } from './event-fingerprints.ts';
