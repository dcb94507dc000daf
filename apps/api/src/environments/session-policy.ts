import { sessionPolicySchema } from '@palestra/protocol/schemas';
import type { SessionPolicy } from '@palestra/session';

const TIMES = {
  heartbeat_timeout_s: 'heartbeatTimeoutMs',
  idle_timeout_s: 'idleTimeoutMs',
  setup_timeout_s: 'setupTimeoutMs',
  call_timeout_s: 'callTimeoutMs',
} as const;

/** How long the environment's server may send nothing; null = the service's default. The engine does not use it. */
export function readSilenceTimeoutMs(stored: unknown): number | null {
  const seconds = sessionPolicySchema.safeParse(stored ?? {}).data?.silence_timeout_s;
  return seconds === undefined ? null : seconds * 1_000;
}

/** The stored settings as the engine's policy. */
export function readSessionPolicy(stored: unknown): Partial<SessionPolicy> {
  const settings = sessionPolicySchema.safeParse(stored ?? {}).data ?? {};
  const policy: { -readonly [K in keyof SessionPolicy]?: SessionPolicy[K] } = {};
  for (const [name, field] of Object.entries(TIMES) as [keyof typeof TIMES, (typeof TIMES)[keyof typeof TIMES]][]) {
    if (settings[name] !== undefined) policy[field] = Math.round(settings[name] * 1_000);
  }
  if (settings.capacity !== undefined) policy.capacity = settings.capacity;
  if (settings.deterministic !== undefined) policy.deterministic = settings.deterministic;
  if (settings.idempotent_tools !== undefined) policy.idempotentTools = settings.idempotent_tools;
  return policy;
}
