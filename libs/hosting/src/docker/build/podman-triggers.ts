import tar from 'tar-stream';
import type { Engine } from '../engine/engine.ts';

/** Podman writes the archive to its disk before it answers. */
const ARCHIVE_MS = 300_000;
const MOST_CONFIG_BYTES = 4 * 2 ** 20;
const MOST_KNOWN = 1_000;

/** Whether images have ONBUILD instructions, which Podman tells only in the archive of an image. */
export class PodmanTriggers {
  /** Ids of images that have none. */
  readonly #without = new Set<string>();

  async has(engine: Engine, id: string, signal: AbortSignal): Promise<boolean> {
    if (this.#without.has(id)) return false;
    const config = await configOf(engine, id, signal);
    if (config === null || isTriggering(config)) return true;
    if (this.#without.size >= MOST_KNOWN) this.#without.clear();
    this.#without.add(id);
    return false;
  }
}

/** As its registry gave it; null: it is too large to be read. */
async function configOf(engine: Engine, id: string, signal: AbortSignal): Promise<string | null> {
  const archive = await engine.stream({ method: 'GET', path: `/images/${id}/get`, deadlineMs: ARCHIVE_MS }, signal);
  const extract = archive.pipe(tar.extract());
  archive.on('error', (error) => extract.destroy(error));
  try {
    for await (const entry of extract) {
      // The layers are `.tar`, and all other names that end like this are in folders.
      if (!/^[0-9a-f]{64}\.json$/.test(entry.header.name)) {
        entry.resume();
        continue;
      }
      if ((entry.header.size ?? 0) > MOST_CONFIG_BYTES) return null;
      const chunks: Buffer[] = [];
      for await (const chunk of entry) chunks.push(chunk as Buffer);
      return Buffer.concat(chunks).toString();
    }
    return null;
  } catch (error) {
    throw engine.failure(error, signal);
  } finally {
    archive.destroy();
  }
}

/**
 * Not by JSON.parse: of names that are given twice, or in other letters, it would take another one than Podman, whose language takes all of them.
 * In a text such names have backslashes.
 */
export const isTriggering = (config: string): boolean =>
  /"onbuild"\s*:\s*\[\s*[^\s\]]/i.test(
    config.replaceAll(/\\u([\da-f]{4})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16))),
  );
