import { type Engine, EngineError } from '../engine/engine.ts';
import { inspectImage } from './image-pull.ts';

/** How long the next build of the same author may continue from the steps of one that failed. */
const KEEP_MS = 60 * 60 * 1_000;

/** Images of the steps of builds that failed. An engine keeps them as its cache, without a limit. */
export class AbandonedLayers {
  /** When each was left, by image id. */
  readonly #left = new Map<string, number>();

  /** `layer`: of the last step that was done; null if there is none. */
  add(layer: string | null): void {
    if (layer !== null) this.#left.set(layer, Date.now());
  }

  /** Removes those that were left an hour ago. */
  async removeOld(engine: Engine, signal: AbortSignal): Promise<void> {
    for (const [layer, leftAt] of this.#left) {
      if (leftAt > Date.now() - KEEP_MS) continue;
      this.#left.delete(layer);
      await removeLayer(engine, layer, signal);
    }
  }
}

/** Removes an image without a name, and of those that it is made of what nothing else uses. */
export async function removeLayer(engine: Engine, layer: string, signal: AbortSignal): Promise<void> {
  const image = await inspectImage(engine, layer, signal);
  if (image === null || [image.RepoTags, image.RepoDigests].some((names) => (names?.length ?? 0) > 0)) return;
  await engine.request({ method: 'DELETE', path: `/images/${image.Id}` }, signal).catch((error: unknown) => {
    // Another image is built on it.
    if (!(error instanceof EngineError)) throw error;
  });
}
