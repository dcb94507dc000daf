export { TextDialect, type TextMetrics, type TextTurnRequest } from './dialect.ts';
export { type ActionTool, readActionTool, writeActionTool } from '../wire/action.ts';
export type * from './text-store.port.ts';
export { playedTurn, readTurn, type TextConfig, type TextStep } from './turn.ts';
