export { lakeFile, lakeKey, LAKE_PART_PLACES, type LakeRollout } from './lake/lake-file.ts';
export { isParquetFormat, type PromptFormat, rowFormatOf } from './row-formats.ts';
export { taskMessages } from './task-prompt.ts';
export { type TaskFailure, taskFile, type TaskSource } from './task-rows.ts';
export { filtersByDifficulty, type TaskFilter } from './task-selection.ts';
export { curriculumFile, type CurriculumTask, isLearnable } from './rollouts/curriculum.ts';
export { datasetCard, type ExportLineage } from './rollouts/dataset-card.ts';
export {
  advantageOf,
  type ExportedMessage,
  type ExportedRollout,
  type ExportedRow,
  isEffective,
  type LensColumns,
  type NarrowRollout,
} from './rollouts/exported-rollout.ts';
export { CONTENT_TYPES, FORMATS, labelFile, narrowFile, preferenceFile, rolloutFile } from './rollouts/formats.ts';
export { redactMessages, redactNarrow } from './rollouts/redact.ts';
export { type Positioned, ShardedRows, shardName } from './rollouts/shards.ts';
export { addFigures, type ExportFigures, noFigures, rewardStd } from './rollouts/statistics.ts';
export { type LabelledRollout, type PairOf, preferencePairs, type ReviewOrigin, splitTurns } from './rollouts/training-examples.ts';
