import path from 'node:path';
import { HostingError } from '../../provider/hosting-error.ts';

const MAX_VOLUMES = 16;
/** Podman parses a path and its mount options from one text, separated by `:`, so a path must not contain options. */
const PATH = /^(?:\/[\w.@+-]+)+$/;

/**
 * Folders that an image declares by `VOLUME`, without duplicates. The engine would put each on its disk, writable and without a limit, also
 * under a root file system that cannot be written.
 */
export function imageVolumes(declared: Readonly<Record<string, unknown>> | null): string[] {
  const paths = [...new Set(Object.keys(declared ?? {}).map((one) => path.posix.normalize(one).replace(/(?<=.)\/$/, '')))];
  const invalid = paths.find((one) => !PATH.test(one));
  if (invalid !== undefined) {
    const shown = JSON.stringify(invalid.slice(0, 100));
    throw new HostingError('instance_failed', `The image has VOLUME ${shown}, which cannot be limited. Use another path.`);
  }
  if (paths.length <= MAX_VOLUMES) return paths;
  throw new HostingError('instance_failed', `The image has ${paths.length} VOLUMEs. At most ${MAX_VOLUMES} are allowed.`);
}
