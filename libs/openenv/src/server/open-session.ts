import { PalestraError } from '@palestra/protocol';
import type { CreateRequest, Recording } from '@palestra/session';
import type { EpisodeContext } from './episode.port.ts';
import { atCapacity, capacityIn } from '../wire/errors.ts';

/** Clients wait 60 s for a reply (docs/reference/openenv.md#transport). They get the refusal for lack of a slot earlier. */
export const SLOT_TIMEOUT_MS = 50_000;
/** Delay before the next attempt when the slot is on another process. */
const RETRY_DELAY_MS = 1_000;

const noSlot = () => new PalestraError('capacity_exhausted');

/**
 * Runs `wait`, which waits for a slot here or on the environment's server. Rejects with `CAPACITY_REACHED` after `slotTimeoutMs`; `wait`
 * can go on until its session is deleted. `refusal`: the last refusal of the environment's server, if any.
 */
async function withSlot<T>(
  context: EpisodeContext,
  wait: (signal: AbortSignal) => Promise<T>,
  refusal: () => PalestraError | null = () => null,
): Promise<T> {
  const { caller, hosted, slotTimeoutMs } = context;
  const { disconnected } = context.connection;
  const timeout = new AbortController();
  const timer = setTimeout(() => timeout.abort(noSlot()), slotTimeoutMs);
  const leave = () => timeout.abort(disconnected.reason);
  disconnected.addEventListener('abort', leave, { once: true });
  try {
    if (disconnected.aborted) throw disconnected.reason as Error;
    return await Promise.race([wait(timeout.signal), rejectOnAbort(timeout.signal)]);
  } catch (error) {
    if (!(error instanceof PalestraError) || error.code !== 'capacity_exhausted') throw error;
    const full = refusal();
    // Our own limits had admitted this session, so the limit is that of the server.
    if (full !== null) throw atCapacity(capacityIn(full.message));
    throw atCapacity(hosted.policy.capacity ?? caller.maxSessions.key ?? caller.maxSessions.org);
  } finally {
    clearTimeout(timer);
    disconnected.removeEventListener('abort', leave);
  }
}

function rejectOnAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
}

/** Takes a slot for a session that is opened later. */
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
 * Opens an engine session and returns its SID. It differs from `sid` if that session was ended meanwhile or got its slot on a process that
 * the client is not connected to. Deletes the session on failure.
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
          recording: recordingOfEpisode(context.recording),
          signal,
          onFull: (full) => (refusal = full),
        });
        return current;
      } catch (error) {
        await engine.delete(caller, current).catch(() => {});
        if (signal.aborted || !mustReserveAgain(error)) throw error;
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

/** The reservation expired, or its slot is on another process. */
const mustReserveAgain = (error: unknown): error is PalestraError =>
  error instanceof PalestraError && ['session_moved', 'session_expired', 'session_deleted'].includes(error.code);

/** Each reset is its own rollout. */
const recordingOfEpisode = (recording: Recording | null): Recording | null =>
  recording === null ? null : { ...recording, rolloutId: crypto.randomUUID() };
