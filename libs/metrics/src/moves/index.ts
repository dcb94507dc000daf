export { findMoves, type StepMove, type StepRewards } from './moves.ts';
export { changeOf, mixOf, type PropertyChange, rankCauses } from './causes.ts';
export { type GroupSums, type Moments, momentsOf, type Sides } from './moments.ts';
