// Which packages of package-lock.json the image has. As a program: removes from node_modules what `npm prune --omit=dev` leaves there although only development needs it,
// such as the `prisma` command line, which is an optional peer of the client.
import { readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const root = path.resolve(import.meta.dirname, '..');

/** Entries of the lock file by their folders, `node_modules/...` or that of a workspace. `isShipped`: production needs it, whatever else does. */
function lockedPackages() {
  const { packages } = JSON.parse(readFileSync(path.join(root, 'package-lock.json'), 'utf8'));
  return Object.entries(packages)
    .filter(([folder, { link }]) => folder.includes('node_modules/') && !link)
    .map(([folder, { name, version, dev, devOptional }]) => ({
      folder,
      id: `${name ?? folder.slice(folder.lastIndexOf('node_modules/') + 'node_modules/'.length)}@${version}`,
      isShipped: !dev && !devOptional,
    }));
}

/** Of packages of others, as `name@version`. */
export const shippedPackages = () => new Set(lockedPackages().flatMap(({ id, isShipped }) => (isShipped ? [id] : [])));

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const shipped = lockedPackages().filter(({ isShipped }) => isShipped);
  for (const { folder, isShipped } of lockedPackages()) {
    // A package that is needed may be in the folder of one that is not.
    if (isShipped || shipped.some((other) => other.folder.startsWith(`${folder}/`))) continue;
    rmSync(path.join(root, folder), { recursive: true, force: true });
  }
}
