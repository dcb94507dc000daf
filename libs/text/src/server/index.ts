export { TextServer, type TextTurnRequest } from './text-server.ts';
export { readActionTool, writeActionTool } from '../wire/action.ts';
export type * from './text-store.port.ts';
export { playedTurn, readTurn, type TextConfig, type TextStep } from './turn.ts';
