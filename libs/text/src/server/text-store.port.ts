import type { JsonValue } from '@palestra/protocol';
import type { SecretMask } from '@palestra/session';
import type { TextConfig } from './turn.ts';

/** A stored turn of a text session. The engine session and the ledger of calls are stored elsewhere. */
export interface TextTurn {
  /** From 1. */
  turn: number;
  /** Hash of the model's text. */
  fingerprint: string;
  /** The turn's call in the ledger; null without a call. */
  taskId: string | null;
  /** The turn has an outcome. */
  settled: boolean;
}

/** A new turn. */
export interface BegunTurn extends Omit<TextTurn, 'settled'> {
  /** The model's text with secrets masked, for the recording. */
  maskedText: string;
}

export interface TextTotals {
  turns: number;
  /** The last turn ended the episode. */
  done: boolean;
  /** JSON texts of the rewards that count, in order. */
  rewards: string[];
}

export interface TextOutcome {
  /** JSON text. */
  reward: string;
  done: boolean;
  counted: boolean;
}

export interface KnownText {
  config: TextConfig;
  /** Masks the session's secrets. */
  mask: SecretMask;
  last: TextTurn | null;
  /** The requested turn; null if it does not exist. */
  stored: TextTurn | null;
}

export interface TextStore {
  /** Does nothing if the session exists. `prompt`: chat messages with secrets masked. */
  insert(sid: string, orgId: string, config: TextConfig, prompt: JsonValue[]): Promise<void>;
  /** null: not a text session. */
  read(sid: string, turn: number | null): Promise<KnownText | null>;
  /** False if the session has the turn already, or another turn made that call. A turn without a call is stored with its outcome. */
  begin(sid: string, turn: BegunTurn, outcome: TextOutcome | null): Promise<boolean>;
  /** Keeps the first outcome. */
  settle(sid: string, turn: number, outcome: TextOutcome): Promise<void>;
  /** Deletes a turn without outcome whose call did not run. */
  release(sid: string, turn: number, taskId: string): Promise<void>;
  totals(sid: string): Promise<TextTotals>;
}
