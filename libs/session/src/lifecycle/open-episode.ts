import type { Backend, BackendCreate, BackendSessionRef } from '../ports/backend.port.ts';

const FORGET_DEADLINE_MS = 60_000;

/** Deletes an episode that no session uses. Ignores errors: its server may be gone. */
export async function forgetEpisode(backend: Backend, ref: BackendSessionRef, deadlineMs = FORGET_DEADLINE_MS): Promise<void> {
  await backend
    .session(ref)
    .delete(AbortSignal.timeout(deadlineMs))
    .catch(() => {});
}

/** Opens an episode. Deletes it again if `signal` aborted in the meantime. */
export async function openEpisode(backend: Backend, create: BackendCreate, signal: AbortSignal): Promise<BackendSessionRef> {
  const ref = await backend.create(create, signal);
  if (!signal.aborted) return ref;
  await forgetEpisode(backend, ref);
  throw signal.reason as Error;
}
