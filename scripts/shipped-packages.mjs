// The packages of package-lock.json that the image contains. As a program: removes from node_modules the packages that `npm prune
// --omit=dev` keeps although only development needs them, such as the `prisma` command line, an optional peer of the client.
import { readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const root = path.resolve(import.meta.dirname, '..');

/** Lock file entries by folder, `node_modules/...` or that of a workspace. `isShipped`: production needs the package. */
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

/** Third-party packages as `name@version`. */
export const shippedPackages = () => new Set(lockedPackages().flatMap(({ id, isShipped }) => (isShipped ? [id] : [])));

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const shipped = lockedPackages().filter(({ isShipped }) => isShipped);
  for (const { folder, isShipped } of lockedPackages()) {
    // A required package may be inside the folder of an unrequired one.
    if (isShipped || shipped.some((other) => other.folder.startsWith(`${folder}/`))) continue;
    rmSync(path.join(root, folder), { recursive: true, force: true });
  }
}
