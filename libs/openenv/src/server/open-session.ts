import { PalestraError } from '@palestra/protocol';
import type { CreateRequest, Recording } from '@palestra/session';
import type { EpisodeContext } from './episode.port.ts';
import { atCapacity, capacityIn } from '../wire/errors.ts';

/** A client waits 60 s for its reply at most (openenv-wire.md 2.3); by then it must know that there is no slot. */
export const SLOT_TIMEOUT_MS = 50_000;
/** Before a slot is asked for again that was given elsewhere. */
const RETRY_DELAY_MS = 1_000;

const noSlot = () => new PalestraError('capacity_exhausted');

/**
 * Runs what waits for a slot, here or on the environment's server. Rejects with `CAPACITY_REACHED` when there is none within the patience of a
 * client; the wait may then go on unheard until its session is deleted. `refusal`: what the environment's server, if that is it, said last.
 */
async function withSlot<T>(
  context: EpisodeContext,
  wait: (signal: AbortSignal) => Promise<T>,
  refusal: () => PalestraError | null = () => null,
): Promise<T> {
  const { caller, hosted, slotTimeoutMs } = context;
  const { disconnected } = context.connection;
  const patience = new AbortController();
  const timer = setTimeout(() => patience.abort(noSlot()), slotTimeoutMs);
  const leave = () => patience.abort(disconnected.reason);
  disconnected.addEventListener('abort', leave, { once: true });
  try {
    if (disconnected.aborted) throw disconnected.reason as Error;
    return await Promise.race([wait(patience.signal), rejectedBy(patience.signal)]);
  } catch (error) {
    if (!(error instanceof PalestraError) || error.code !== 'capacity_exhausted') throw error;
    const full = refusal();
    // Its limit is its own: those that are kept here had let this session through.
    if (full !== null) throw atCapacity(capacityIn(full.message));
    throw atCapacity(hosted.policy.capacity ?? caller.maxSessions.key ?? caller.maxSessions.org);
  } finally {
    clearTimeout(timer);
    disconnected.removeEventListener('abort', leave);
  }
}

function rejectedBy(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
}

/** Takes a slot for a SID that is opened later. */
export async function reserveSlot(context: EpisodeContext, sid: string): Promise<void> {
  const { engine, caller, hosted } = context;
  try {
    await engine.reserve(caller, { sid, hosted, secrets: context.secrets, recording: context.recording });
    await withSlot(context, (signal) => engine.admit(caller, sid, signal, () => {}));
    if (context.connection.disconnected.aborted) throw context.connection.disconnected.reason as Error;
  } catch (error) {
    await engine.delete(caller, sid);
    throw error;
  }
}

/**
 * Opens a session of the engine; answers its SID, which is not `sid` when that was given up meanwhile, or got its slot on a process that our client is
 * not connected to. A wait in vain leaves nothing behind.
 */
export function openSession(context: EpisodeContext, sid: string, task: CreateRequest['task']): Promise<string> {
  const { engine, caller, hosted } = context;
  let current = sid;
  let refusal: PalestraError | null = null;
  const open = async (signal: AbortSignal): Promise<string> => {
    for (;;) {
      refusal = null;
      try {
        await engine.create(caller, {
          sid: current,
          resolve: async () => hosted,
          variant: async () => null,
          task,
          toolsetName: null,
          secrets: context.secrets,
          recording: ofOneEpisode(context.recording),
          signal,
          onFull: (full) => (refusal = full),
        });
        return current;
      } catch (error) {
        await engine.delete(caller, current).catch(() => {});
        if (signal.aborted || !isElsewhere(error)) throw error;
        current = context.connection.nextSid();
        if (error.code === 'session_moved') await new Promise((resolve) => setTimeout(resolve, RETRY_DELAY_MS));
      }
    }
  };
  return withSlot(context, open, () => refusal).catch(async (error: unknown) => {
    await engine.delete(caller, current).catch(() => {});
    throw error;
  });
}

/** Its reservation has run out, or its slot is on another process. */
const isElsewhere = (error: unknown): error is PalestraError =>
  error instanceof PalestraError && ['session_moved', 'session_expired', 'session_deleted'].includes(error.code);

/** Each reset is a rollout of its own. */
const ofOneEpisode = (recording: Recording | null): Recording | null =>
  recording === null ? null : { ...recording, rolloutId: crypto.randomUUID() };
