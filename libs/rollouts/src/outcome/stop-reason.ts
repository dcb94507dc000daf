import { md5Hex } from '../json/hash.ts';
import { type Provenance, type RolloutSource, STOP_REASONS, type StopReason, type UnscoredFailure } from '@palestra/protocol';

/** Other words of trainers and engines for the same. `error` does not say whose; slime means its own. */
const SYNONYMS: Record<string, StopReason> = {
  reached_terminal_state: 'finished',
  stop: 'finished',
  length: 'max_tokens',
  error: 'infra_error',
};

/** A raw stop reason in canonical words; null for what nobody defined. SkyRL's `finished` only says that a tool ran. */
export function canonicalStop(raw: string | null): StopReason | null {
  if (raw === null || raw === 'unknown') return null;
  if (Object.hasOwn(SYNONYMS, raw)) return SYNONYMS[raw]!;
  return (STOP_REASONS as readonly string[]).includes(raw) ? (raw as StopReason) : null;
}

export interface StopFacts {
  source: RolloutSource;
  raw: string | null;
  failureClass: UnscoredFailure | null;
  /** Any message, and the last tool result, is marked as the end. */
  isFinished: boolean;
  lastResultFinished: boolean;
  /** Turn of the last logged call (`turnOfCall`), null when it cannot be told. */
  lastCallTurn: number | null;
  /** As reported. */
  numTurns: number | null;
}

export interface StopContext {
  /** The configured limit of the run. */
  maxTurns?: number | null;
  /** Without one: the largest reported `num_turns` of the run. */
  runMaxTurns?: number | null;
}

export interface ExplainedStop {
  stop: StopReason;
  provenance: Provenance;
  rule: string | null;
}

export function stopReason(facts: StopFacts, context: StopContext = {}): ExplainedStop {
  if (facts.failureClass !== null) {
    return { stop: facts.failureClass === 'environment' ? 'env_error' : 'infra_error', provenance: 'reported', rule: 'failure_class' };
  }
  if (facts.source === 'skyrl' && (facts.raw === 'finished' || facts.raw === 'no_tool_call')) return skyrlStop(facts, context);
  const known = canonicalStop(facts.raw);
  if (known !== null) return { stop: known, provenance: facts.raw === 'error' ? 'inferred' : 'reported', rule: 'raw' };
  if (facts.isFinished) return { stop: 'finished', provenance: 'parsed', rule: 'is_finished' };
  return { stop: 'unknown', provenance: 'unknown', rule: null };
}

/**
 * SkyRL says `finished` as soon as any tool ran. How it really ended follows from t, the turn of the last call, against the number of
 * turns n and the limit M: turns without a call are counted there but not uploaded.
 */
function skyrlStop(facts: StopFacts, context: StopContext): ExplainedStop {
  if (facts.raw === 'no_tool_call') return { stop: 'no_tool_call', provenance: 'parsed', rule: 'skyrl.no_call' };
  if (facts.lastResultFinished) return { stop: 'finished', provenance: 'parsed', rule: 'is_finished' };
  const { lastCallTurn: t, numTurns: n } = facts;
  if (t === null || n === null) return { stop: 'unknown', provenance: 'unknown', rule: null };
  const limit = Math.max(context.maxTurns ?? context.runMaxTurns ?? 0, n);
  if (t === n) return { stop: n === limit ? 'max_turns' : 'context_length', provenance: 'inferred', rule: 'skyrl.turn' };
  if (n < limit) return { stop: 'no_tool_call', provenance: 'inferred', rule: 'skyrl.turn' };
  // The last allowed turn had no good call: no call or one that could not be parsed.
  return { stop: 'unknown', provenance: 'unknown', rule: 'skyrl.turn' };
}

/** No episode has more; a reported count beyond is not searched. */
const MAX_TURNS = 4_096;

/**
 * The turn, from 1, of SkyRL's call `callId` = md5("{turn}:{tool}") in hex, first 12 characters. Null when no turn up to `numTurns` fits.
 * `from`: a turn that it cannot be before; every call has its own turn, so the number of calls is one.
 */
export function turnOfCall(callId: string, tool: string, numTurns: number, from = 1): number | null {
  if (!/^[0-9a-f]{12}$/.test(callId)) return null;
  for (let turn = Math.max(from, 1); turn <= Math.min(numTurns, MAX_TURNS); turn += 1) {
    if (md5Hex(`${turn}:${tool}`).startsWith(callId)) return turn;
  }
  return null;
}
