import { type FailureClass, isObject, type JsonValue } from '@palestra/protocol';
import type { StoredSession } from '../http/protocol.ts';

/** The fields that a resources server adds to a verified row (`BaseVerifyResponse` of `nemo_gym/base_resources_server.py`). */
export interface Verdict {
  reward: number;
  /** The reward says nothing about the policy. */
  mask_sample: boolean;
  /** A kind of `nemo_gym/failure_kinds.py`, or one of ours: `palestra:...`. */
  failure_kind: string | null;
  failure_reason: string | null;
}

const KINDS: Readonly<Record<string, string>> = {
  session_lost: 'session_lost',
  session_expired: 'session_expired',
  session_deleted: 'cancelled',
  call_abandoned: 'cancelled',
  backend_unreachable: 'transport_unreachable',
  backend_timeout: 'transport_timeout',
  call_timeout: 'transport_timeout',
  setup_timeout: 'transport_timeout',
  limit_reached: 'provider_quota_exhausted',
  capacity_exhausted: 'provider_quota_exhausted',
  shutting_down: 'shutdown',
};
/** NeMo Gym has no kind for a failure of the environment's own code. */
const ENVIRONMENT_KIND = 'palestra:environment_failed';

/** `code`: of the error catalogue; null for an error of the environment's own tool. */
const kindOf = (code: string | null, failureClass: FailureClass): string =>
  KINDS[code ?? ''] ?? (failureClass === 'environment' ? ENVIRONMENT_KIND : 'provider_unavailable');

/** An episode without a valid reward. */
export function maskedVerdict({ failureClass, code, detail }: NonNullable<StoredSession['failure']>): Verdict {
  const reason = code === null ? detail : `${code}: ${detail}`;
  return { reward: 0, mask_sample: true, failure_kind: kindOf(code, failureClass), failure_reason: reason };
}

/** The sum of the rewards, 0 without any. An episode whose session ended before `verify` is not valid. */
export function verdictOf({ isLive, totalReward, failure }: StoredSession): Verdict {
  if (failure !== null) return maskedVerdict(failure);
  if (!isLive) return maskedVerdict({ failureClass: 'infrastructure', code: 'session_deleted', detail: 'The session has ended.' });
  return { reward: totalReward ?? 0, mask_sample: false, failure_kind: null, failure_reason: null };
}

/** The text of the last message in a `response` of the Responses API; null if it ends with anything else. */
export function lastMessage(response: JsonValue): string | null {
  const output = isObject(response) ? response['output'] : null;
  const last = Array.isArray(output) ? output.at(-1) : null;
  if (!isObject(last) || last['type'] !== 'message' || !Array.isArray(last['content'])) return null;
  return last['content'].map((part) => (isObject(part) && typeof part['text'] === 'string' ? part['text'] : '')).join('');
}
