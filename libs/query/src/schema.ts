import type { KnownPhase, MessageType, ProvenanceField, RolloutState, StopReason } from '@palestra/protocol';
import type { RolloutFlag } from './catalogue.ts';

/** Logical columns. Each is one SQL expression, NULL where the value is not known. */
export type FieldName =
  | 'id'
  | 'name'
  | 'run_id'
  | 'run_name'
  | 'env'
  | 'env_version'
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
  | 'cause'
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

/** Adds a value to the parameters of the statement and returns its placeholder. The text of a query reaches SQL in no other way. */
export type Bind = (value: unknown) => string;

/** A text that one message of the rollout must contain. */
export interface TextCondition {
  /**
   * phrase: the words of `text` in this order, by full text search. literal: the characters of `text`, which a regex requires and a
   * post filter checks again. An implementation that cannot check a literal returns TRUE, so that no match is lost.
   */
  kind: 'phrase' | 'literal';
  text: string;
  /** Applies to literals only. */
  ignoreCase: boolean;
  /** null: any type. */
  types: readonly MessageType[] | null;
}

/** Names and codes of the database. All strings are trusted SQL and never contain text of a query. */
export interface QuerySchema {
  /** The SQL expression of each column, over `rollouts r`. */
  fields: Record<FieldName, string>;
  stopCodes: Record<StopReason, number>;
  /** The phase `unknown` is NULL in the database. */
  phaseCodes: Record<KnownPhase, number>;
  stateCodes: Record<RolloutState, number>;
  /** Masks of one bit each. */
  flagBits: Record<RolloutFlag, number>;
  /** Position of each field's two bits. */
  provShifts: Record<ProvenanceField, number>;
  /** EXISTS over the tags of the rollout; `test` gets the expression of the tag. */
  tagExists(test: (tag: string) => string): string;
  annotationExists(field: 'verdict' | 'note' | 'author', test: (value: string) => string): string;
  /** EXISTS over the tool calls of the rollout; `test` gets the expression of the tool name. `failed`: only calls that failed. */
  toolExists(failed: boolean, test: (name: string) => string): string;
  /** EXISTS over the message texts of the rollout, also of sealed ones. */
  textExists(condition: TextCondition, bind: Bind): string;
}
