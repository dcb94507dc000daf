export {
  rewardMean,
  rewardStd,
  rewardPercentile,
  passAtK,
  zeroVariance,
  avgInterval,
  passAtKInterval,
  truncatedRate,
  isTruncated,
  advantages,
} from './canonical.ts';
export { isLens, lensRevision, metric, listMetrics, computeLens, resolveMetricName } from './catalogue.ts';
export { canonicalOfSums } from './column-figures.ts';
export { SUCCEEDS, FAILED, STOP_KNOWN, TRUNCATED, type RewardCount, type ColumnSums, sumColumns, mergeColumnSums } from './columns.ts';
export { NOT_THE_POLICY, isFailed, select } from './denominators.ts';
export { type RolloutFacts, type SuccessRule, type MetricContext, type Figure, type MetricAnswer, isFigure, figure } from './facts.ts';
export {
  ZERO_VARIANCE_TOLERANCE,
  type GroupStats,
  groupStats,
  mergeGroupStats,
  stdFromStats,
  type ZeroVarianceKind,
  zeroVarianceKind,
} from './group-stats.ts';
export {
  type RewardHistogram,
  emptyHistogram,
  histogram,
  histogramEdges,
  mergeHistograms,
  percentileOfHistogram,
  binWidth,
} from './histogram.ts';
export { bootstrapInterval, type Interval, passIntervals, studentInterval } from './intervals.ts';
export type { MetricDefinition } from './lens.ts';
export { lensRolloutRule, rolloutOfLens } from './lens-rollout.ts';
export { passAtK as passAtKOfGroup, passHatK as passHatKOfGroup, powersOfTwo } from './pass.ts';
export { inferSuccessRule, isSuccess } from './success.ts';
export { ascending, percentileOfCounts } from './summary.ts';
export { groupBy } from './group-by.ts';
