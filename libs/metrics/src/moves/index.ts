export { findMoves, type StepMove, type StepRewards } from './moves.ts';
export { changeOf, mixOf, type PropertyChange, rankCauses } from './causes.ts';
