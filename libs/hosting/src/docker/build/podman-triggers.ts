import { text } from 'node:stream/consumers';
import tar from 'tar-stream';
import { HostingError } from '../../provider/hosting-error.ts';
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
    if (isTriggering(await configOf(engine, id, signal))) return true;
    if (this.#without.size >= MOST_KNOWN) this.#without.clear();
    this.#without.add(id);
    return false;
  }
}

/** As its registry gave it. Throws `source_invalid` if it is too large to be read. */
async function configOf(engine: Engine, id: string, signal: AbortSignal): Promise<string> {
  const archive = await engine.stream({ method: 'GET', path: `/images/${id}/get`, deadlineMs: ARCHIVE_MS }, signal);
  const extract = archive.pipe(tar.extract());
  archive.on('error', (error) => extract.destroy(error));
  try {
    for await (const entry of extract) {
      // The layers are `.tar`, and all other names that end like this are in folders.
      if (!/^[0-9a-f]{64}\.json$/.test(entry.header.name)) entry.resume();
      else if ((entry.header.size ?? 0) <= MOST_CONFIG_BYTES) return await text(entry);
      else throw invalid(`The configuration of the image ${id} has more than 4 MB. Use another base image.`);
    }
    throw invalid(`Podman does not tell the configuration of the image ${id}. Use another base image.`);
  } catch (error) {
    throw engine.failure(error, signal);
  } finally {
    archive.destroy();
  }
}

const invalid = (detail: string) => new HostingError('source_invalid', detail);

/**
 * Not by JSON.parse: of names that are given twice, or in other letters, it would take another one than Podman, whose language takes all of them.
 * In a text such names have backslashes.
 */
export const isTriggering = (config: string): boolean =>
  /"onbuild"\s*:\s*\[\s*[^\s\]]/i.test(
    config.replaceAll(/\\u([\da-f]{4})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16))),
  );
