import { z } from 'zod';

const seconds = (max: number) => z.number().positive().max(max).optional();
const DAY_S = 86_400;

/** `sessions` of an environment, set by its owner. Absent values default to those of the author, then of the server. */
export const sessionPolicySchema = z
  .strictObject({
    heartbeat_timeout_s: seconds(DAY_S).describe('A session ends after this long without ping or request'),
    idle_timeout_s: seconds(30 * DAY_S).describe('A session ends after this long without a request other than ping'),
    setup_timeout_s: seconds(DAY_S).describe('A longer setup fails'),
    call_timeout_s: seconds(7 * DAY_S).describe('A longer call is abandoned and its session is lost'),
    silence_timeout_s: seconds(DAY_S).describe(
      'An ORS server at a URL counts as dead after this long without a sign of life while a request waits. Set it above the longest time in which a tool blocks the server',
    ),
    capacity: z
      .int()
      .positive()
      .max(1_000_000)
      .nullable()
      .optional()
      .describe('Concurrent sessions per replica of the environment; null = no limit'),
    deterministic: z.boolean().optional().describe('Same task, same calls, same results: sessions survive their process and can be forked'),
    idempotent_tools: z.array(z.string()).max(1_000).optional().describe('Tools that may run again if their outcome is unknown'),
  })
  .meta({ id: 'SessionPolicy' });
export type SessionPolicyView = z.infer<typeof sessionPolicySchema>;
