import { md5Hex } from '../json/hash.ts';
import { type Provenance, type RolloutSource, STOP_REASONS, type StopReason, type UnscoredFailure } from '@palestra/protocol';

/** Other words of trainers and engines. `error` does not say whose failure it is; slime means its own. */
const SYNONYMS: Record<string, StopReason> = {
  reached_terminal_state: 'finished',
  stop: 'finished',
  length: 'max_tokens',
  error: 'infra_error',
};

/** The canonical word for a raw stop reason; null if it is unknown. SkyRL's `finished` only says that a tool ran. */
export function canonicalStop(raw: string | null): StopReason | null {
  if (raw === null || raw === 'unknown') return null;
  if (Object.hasOwn(SYNONYMS, raw)) return SYNONYMS[raw]!;
  return (STOP_REASONS as readonly string[]).includes(raw) ? (raw as StopReason) : null;
}

export interface StopInput {
  source: RolloutSource;
  raw: string | null;
  failureClass: UnscoredFailure | null;
  /** Whether any message, and whether the last tool result, has `isFinished`. */
  isFinished: boolean;
  lastResultFinished: boolean;
  /** Turn of the last logged call (`turnOfCall`); null if unknown. */
  lastCallTurn: number | null;
  /** Reported number of turns. */
  numTurns: number | null;
}

export interface StopContext {
  /** The configured limit of the run. */
  maxTurns?: number | null;
  /** Used without a configured limit: the largest reported `num_turns` of the run. */
  runMaxTurns?: number | null;
}

export interface ExplainedStop {
  stop: StopReason;
  provenance: Provenance;
  rule: string | null;
}

export function stopReason(input: StopInput, context: StopContext = {}): ExplainedStop {
  if (input.failureClass !== null) {
    return { stop: input.failureClass === 'environment' ? 'env_error' : 'infra_error', provenance: 'reported', rule: 'failure_class' };
  }
  if (input.source === 'skyrl' && (input.raw === 'finished' || input.raw === 'no_tool_call')) return skyrlStop(input, context);
  const known = canonicalStop(input.raw);
  if (known !== null) return { stop: known, provenance: input.raw === 'error' ? 'inferred' : 'reported', rule: 'raw' };
  if (input.isFinished) return { stop: 'finished', provenance: 'parsed', rule: 'is_finished' };
  return { stop: 'unknown', provenance: 'unknown', rule: null };
}

/**
 * SkyRL reports `finished` as soon as any tool ran. The real stop reason follows from the turn t of the last call, the number of turns n
 * and the limit M, because n also counts turns without a call, which are not uploaded (docs/reference/metrics.md#stop-reason).
 */
function skyrlStop(input: StopInput, context: StopContext): ExplainedStop {
  if (input.raw === 'no_tool_call') return { stop: 'no_tool_call', provenance: 'parsed', rule: 'skyrl.no_call' };
  if (input.lastResultFinished) return { stop: 'finished', provenance: 'parsed', rule: 'is_finished' };
  const { lastCallTurn: t, numTurns: n } = input;
  if (t === null || n === null) return { stop: 'unknown', provenance: 'unknown', rule: null };
  const limit = Math.max(context.maxTurns ?? context.runMaxTurns ?? 0, n);
  if (t === n) return { stop: n === limit ? 'max_turns' : 'context_length', provenance: 'inferred', rule: 'skyrl.turn' };
  if (n < limit) return { stop: 'no_tool_call', provenance: 'inferred', rule: 'skyrl.turn' };
  // The last allowed turn had no valid call: none, or one that could not be parsed.
  return { stop: 'unknown', provenance: 'unknown', rule: 'skyrl.turn' };
}

/** The failure that a stop reason names, for rollouts of which nothing but the upload is known; null if it names none. */
export function failureOfStop(stop: StopReason | null): UnscoredFailure | null {
  if (stop === 'env_error') return 'environment';
  return stop === 'infra_error' ? 'infrastructure' : null;
}

/** Larger reported counts are not searched. */
const MAX_TURNS = 4_096;

/**
 * The turn, from 1, of SkyRL's call `callId`: the first 12 hex characters of md5("{turn}:{tool}"). null if no turn up to `numTurns` fits.
 * `from`: the earliest possible turn; each call has its own turn, so the number of calls is a lower bound.
 */
export function turnOfCall(callId: string, tool: string, numTurns: number, from = 1): number | null {
  if (!/^[0-9a-f]{12}$/.test(callId)) return null;
  for (let turn = Math.max(from, 1); turn <= Math.min(numTurns, MAX_TURNS); turn += 1) {
    if (md5Hex(`${turn}:${tool}`).startsWith(callId)) return turn;
  }
  return null;
}
