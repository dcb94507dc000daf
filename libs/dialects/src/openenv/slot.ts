import { PalestraError } from '@palestra/protocol';
import type { CreateRequest, Recording } from '@palestra/session';
import type { Scene } from './episode.ts';
import { atCapacity } from './errors.ts';

/** A client waits 60 s for its reply at most (openenv-wire.md 2.3); by then it must know that there is no slot. */
export const SLOT_PATIENCE_MS = 50_000;

const noSlot = (cause?: unknown) => new PalestraError('capacity_exhausted', { cause });

/** Runs what waits for a slot. Rejects with `CAPACITY_REACHED` when there is none within the patience of a client. */
export async function withSlot<T>({ caller, hosted, gone }: Scene, wait: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const max = hosted.policy.capacity ?? caller.maxSessions.key ?? caller.maxSessions.org;
  // Nobody waits where nothing is limited.
  if (max === null) return wait(gone);
  const patience = new AbortController();
  const timer = setTimeout(() => patience.abort(noSlot()), SLOT_PATIENCE_MS);
  const leave = () => patience.abort(gone.reason);
  gone.addEventListener('abort', leave, { once: true });
  try {
    if (gone.aborted) leave();
    return await wait(patience.signal);
  } catch (error) {
    throw error instanceof PalestraError && error.code === 'capacity_exhausted' ? atCapacity(max) : error;
  } finally {
    clearTimeout(timer);
    gone.removeEventListener('abort', leave);
  }
}

/** Takes a slot for a SID that is opened later. */
export async function reserveSlot(scene: Scene, sid: string): Promise<void> {
  const { engine, caller, hosted } = scene;
  await engine.reserve(caller, { sid, hosted, secrets: null, recording: null });
  await withSlot(scene, (signal) => engine.admit(caller, sid, signal, () => {}));
}

/** Opens a session of the engine; one that waits in vain leaves nothing behind. */
export async function openSession(scene: Scene, sid: string, task: CreateRequest['task']): Promise<void> {
  const { engine, caller, hosted } = scene;
  try {
    await withSlot(scene, (signal) =>
      engine.create(caller, {
        sid,
        resolve: async () => hosted,
        variant: async () => null,
        task,
        toolsetName: null,
        secrets: null,
        recording: ofOneEpisode(scene.recording),
        signal,
      }),
    );
  } catch (error) {
    await engine.delete(caller, sid).catch(() => {});
    throw error;
  }
}

/** Each reset is a rollout of its own. */
const ofOneEpisode = (recording: Recording | null): Recording | null =>
  recording === null ? null : { ...recording, rolloutId: crypto.randomUUID() };
