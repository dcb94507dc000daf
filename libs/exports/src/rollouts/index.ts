export { curriculumFile, type CurriculumTask, isLearnable } from './curriculum.ts';
export { datasetCard, type ExportLineage } from './dataset-card.ts';
export {
  advantageOf,
  type ExportedMessage,
  type ExportedRollout,
  type ExportedRow,
  isEffective,
  type LensColumns,
  type NarrowRollout,
} from './exported-rollout.ts';
export { CONTENT_TYPES, FORMATS, narrowFile, preferenceFile, rolloutFile } from './formats.ts';
export { EXPORT_COLUMNS } from './narrow-columns.ts';
export { redactMessages, redactNarrow } from './redact.ts';
export { type Positioned, ShardedRows, shardName } from './shards.ts';
export { addFigures, type ExportFigures, noFigures, rewardStd } from './statistics.ts';
export { type PairOf, preferencePairs, splitTurns } from './training-examples.ts';
