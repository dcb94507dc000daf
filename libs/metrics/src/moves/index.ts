export { BASELINE_STEPS, findMoves, type GroupedRewards, type StepMove, type StepRewards } from './moves.ts';
export { changeOf, type Contribution, mixOf, type PropertyChange, rankCauses, type Sides, type TaskShare } from './causes.ts';
