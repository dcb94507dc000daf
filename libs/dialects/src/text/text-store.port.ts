import type { TextConfig } from './turn.ts';

/** What is kept of a text session beside its engine session and the ledger of its calls: how it is read, and its turns. */
export interface TextTurn {
  /** From 1. */
  turn: number;
  /** Of the model's text. */
  fingerprint: string;
  /** The call of the ledger that it made; null when it made none. */
  taskId: string | null;
  /** It has an outcome. */
  settled: boolean;
}

/** A turn that begins. */
export interface BegunTurn extends Omit<TextTurn, 'settled'> {
  /** The model's text, for the recording of the session; null where there is none. */
  said: string | null;
}

export interface TextTotals {
  turns: number;
  /** The last turn ended the episode. */
  done: boolean;
  /** JSON numbers as written, of the turns that count, in order. */
  rewards: string[];
}

export interface TextOutcome {
  /** JSON number as written. */
  reward: string;
  done: boolean;
  counted: boolean;
}

export interface TextStore {
  /** Does nothing for a session that is there. */
  insert(sid: string, config: TextConfig): Promise<void>;
  /** `asked`: the turn of that number; null when there is none. null for a session that is none of text. */
  read(sid: string, turn: number | null): Promise<{ config: TextConfig; last: TextTurn | null; asked: TextTurn | null } | null>;
  /** False when the session has that turn already, or another turn of it made that call. A turn that made no call comes with its outcome. */
  begin(sid: string, turn: BegunTurn, outcome: TextOutcome | null): Promise<boolean>;
  /** The first outcome stays. */
  settle(sid: string, turn: number, outcome: TextOutcome): Promise<void>;
  /** Forgets a turn without outcome whose call did certainly not run. */
  release(sid: string, turn: number, taskId: string): Promise<void>;
  totals(sid: string): Promise<TextTotals>;
}
