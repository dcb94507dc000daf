export { TextDialect, type TextMetrics, type TextTurnRequest } from './dialect.ts';
export { type ActionTool, readActionTool, writeActionTool } from './action.ts';
export type * from './text-store.port.ts';
export type { TextConfig, TextStep } from './turn.ts';
