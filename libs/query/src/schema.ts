import type { MessageType, Phase, ProvenanceField, RolloutState, StopReason } from '@palestra/protocol';
import type { RolloutFlag } from './catalogue.ts';

/** Logical columns; each is one SQL expression, null where the value is not known. */
export type FieldName =
  | 'id'
  | 'name'
  | 'run_id'
  | 'run_name'
  | 'env'
  | 'split'
  | 'phase'
  | 'task_key'
  | 'task_index'
  | 'group_key'
  | 'sample'
  | 'model'
  | 'step'
  | 'policy_step'
  | 'reward'
  | 'turns'
  | 'calls'
  | 'call_errors'
  | 'msgs'
  | 'tok'
  | 'bytes'
  | 'gaps'
  | 'dur'
  | 'lat'
  | 'received'
  | 'stop'
  | 'state'
  | 'flags'
  | 'prov'
  | 'group_n'
  | 'group_n_expected'
  | 'group_mean'
  | 'group_std'
  | 'group_pass'
  | 'group_min'
  | 'group_max';

export type JoinName = 'run' | 'task' | 'env' | 'meta' | 'group';

/** Adds a value to the statement's parameters and answers its placeholder: the only way by which a query's text reaches SQL. */
export type Bind = (value: unknown) => string;

/** A text to be found in one message of a rollout. */
export interface TextCondition {
  /**
   * phrase: the words of `text` in a row, by full text search. literal: the characters of `text` (of a regex, checked again afterwards); a
   * source that cannot tell may answer TRUE, nothing else may be left out.
   */
  kind: 'phrase' | 'literal';
  text: string;
  /** Only of a literal. */
  ignoreCase: boolean;
  /** Null: of any type. */
  types: readonly MessageType[] | null;
}

/** Names and codes of the database. All strings are trusted SQL; nothing of a query is ever among them. */
export interface QuerySchema {
  fields: Record<FieldName, { sql: string; join?: JoinName }>;
  /** The JOIN clause of each; a row of rollouts must come out once. */
  joins: Record<JoinName, string>;
  stopCodes: Record<StopReason, number>;
  /** `unknown` is null in the database. */
  phaseCodes: Record<Exclude<Phase, 'unknown'>, number>;
  stateCodes: Record<RolloutState, number>;
  /** Masks of one bit each. */
  flagBits: Record<RolloutFlag, number>;
  /** Position of each field's two bits. */
  provShifts: Record<ProvenanceField, number>;
  /** EXISTS over the rollout's tags, `test` given the tag's expression. */
  tagExists(test: (tag: string) => string): string;
  annotationExists(field: 'verdict' | 'note' | 'author', test: (value: string) => string): string;
  /** EXISTS over the rollout's tool calls, `test` given the tool name's expression; `failed`: only of calls that failed. */
  toolExists(failed: boolean, test: (name: string) => string): string;
  /** EXISTS over the texts of the rollout's messages, wherever they are kept. */
  textExists(condition: TextCondition, bind: Bind): string;
}
