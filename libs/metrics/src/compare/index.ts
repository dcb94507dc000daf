export {
  bootstrapOf,
  type Cell,
  commonTasks,
  compare,
  type Comparison,
  estimateDifference,
  type PairedTask,
  type RunCells,
} from './compare.ts';
export { holm, mcnemar, pairedEstimate, type Sample } from './tests.ts';
export { powerInWords } from './words.ts';
