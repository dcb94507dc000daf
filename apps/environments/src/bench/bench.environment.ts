import { defineActionEnvironment, z } from '@palestra/environment-kit';
import { createHash } from 'node:crypto';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { readme } from './card.ts';

const LONGEST_WAIT_SECONDS = 600;
/** Cached, because reading it costs more than a step. */
const HOST = hostname();

/** The fields of OpenEnv's scaling benchmark, so that its load client can use this environment. */
const observation = z.object({
  waited_seconds: z.number(),
  pid: z.int(),
  session_hash: z.string(),
  host_url: z.string(),
  step_count: z.int(),
});

/** Waits for the requested time at no cost, to measure the server around it. */
export const bench = defineActionEnvironment({
  name: 'bench',
  description: 'Waits for the requested time and reports its process: for measuring how many sessions and steps a server carries.',
  readme,
  splits: ['train'],
  tasks: () => [{}],
  action: z.object({ wait_seconds: z.number().min(0).max(LONGEST_WAIT_SECONDS).default(0) }),
  observation,
  instructions: 'Waits for wait_seconds.',
  create: ({ sid }) => ({ sessionHash: createHash('sha256').update(sid).digest('hex').slice(0, 16), steps: 0 }),
  reset: ({ state }) => ({ observation: report(0, state) }),
  step({ wait_seconds: seconds }, { state, signal }) {
    const taken = () => {
      state.steps += 1;
      return { observation: report(seconds, state), reward: 0 };
    };
    // Without a wait there is no promise.
    return seconds > 0 ? sleep(seconds * 1000, undefined, { signal }).then(taken) : taken();
  },
});

function report(waitedSeconds: number, { sessionHash, steps }: { sessionHash: string; steps: number }): z.input<typeof observation> {
  return { waited_seconds: waitedSeconds, pid: process.pid, session_hash: sessionHash, host_url: HOST, step_count: steps };
}
