export { chatMessages, type ChatTurn, type ToolCall } from './chat-messages.ts';
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
  type ProvenanceWord,
} from './exported-rollout.ts';
export {
  CONTENT_TYPES,
  type FileOptions,
  FORMATS,
  narrowFile,
  preferenceFile,
  ROLLOUT_FORMATS,
  rolloutFile,
  type RolloutFormat,
} from './formats.ts';
export { EXPORT_COLUMNS, LENS_COLUMNS, MESSAGE_COLUMNS, NARROW_COLUMNS } from './narrow-columns.ts';
export { redactMessages, redactNarrow } from './redact.ts';
export { charactersOf, rolloutParquet } from './rollout-parquet.ts';
export { type Positioned, ShardedRows, type ShardLimits, shardName } from './shards.ts';
export { addFigures, type ExportFigures, noFigures, rewardStd } from './statistics.ts';
export {
  type PairOf,
  preferencePairs,
  type PreferenceExample,
  type SftExample,
  splitTurns,
  type WeightedTurn,
} from './training-examples.ts';
