export {
  avgAtN,
  rewardMean,
  rewardStd,
  rewardPercentile,
  passAtK,
  zeroVariance,
  avgInterval,
  passAtKInterval,
  advantages,
} from './canonical.ts';
export { isLens, lensRevision, metric, listMetrics, computeLens, resolveMetricName } from './catalogue.ts';
export { isFailed, select } from './denominators.ts';
export { type Figure, type MetricAnswer, isFigure } from './figure.ts';
export {
  ZERO_VARIANCE_TOLERANCE,
  type GroupStats,
  groupStats,
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
export { alphaInterval, krippendorffAlpha } from './agreement.ts';
export { type Interval, passIntervals, type SampleSums, studentInterval, studentIntervalOfSums, wilsonInterval } from './intervals.ts';
export type { MetricDefinition } from './lens.ts';
export { lensRolloutRule, rolloutOfLens } from './lens-rollout.ts';
export { mostCommonSize, passAtK as passAtKOfGroup, passSizes, powersOfTwo } from './pass.ts';
export {
  type Columns,
  columnsOf,
  countOf,
  type MetricContext,
  type RolloutColumns,
  type RolloutFigures,
  type SuccessRule,
  takeRollouts,
} from './rollout-columns.ts';
export { clusteredProportion, type Proportion } from './proportion.ts';
export { inferSuccessRule } from './success.ts';
export { percentileOfCounts } from './summary.ts';
export { groupBy } from './group-by.ts';
export * from './compare/index.ts';
export * from './moves/index.ts';
