import type { JsonValue } from '@palestra/protocol';
import type { SecretMask } from '@palestra/session';
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
  /** The model's text, secrets hidden, for the recording of the session: it may be asked for after the turn. */
  said: string;
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

export interface KnownText {
  config: TextConfig;
  /** Hides the session's secrets. */
  mask: SecretMask;
  last: TextTurn | null;
  /** The turn that was asked for; null when there is none of that number. */
  asked: TextTurn | null;
}

export interface TextStore {
  /** Does nothing for a session that is there. `prompt`: chat messages, secrets hidden. */
  insert(sid: string, orgId: string, config: TextConfig, prompt: JsonValue[]): Promise<void>;
  /** null for a session that is none of text. */
  read(sid: string, turn: number | null): Promise<KnownText | null>;
  /** False when the session has that turn already, or another turn of it made that call. A turn that made no call comes with its outcome. */
  begin(sid: string, turn: BegunTurn, outcome: TextOutcome | null): Promise<boolean>;
  /** The first outcome stays. */
  settle(sid: string, turn: number, outcome: TextOutcome): Promise<void>;
  /** Forgets a turn without outcome whose call did certainly not run. */
  release(sid: string, turn: number, taskId: string): Promise<void>;
  totals(sid: string): Promise<TextTotals>;
}
