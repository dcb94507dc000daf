import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** Builds an image with this Node.js and its libraries from local files, because an image registry may be missing. Returns its name. */
export function makeNodeImage(engine: string): string {
  const root = mkdtempSync(path.join(tmpdir(), 'palestra-test-image-'));
  const image = `localhost/palestra-test/node:${process.pid}`;
  try {
    for (const folder of ['tmp', 'proc', 'sys', 'dev', 'etc', 'usr/bin']) mkdirSync(path.join(root, folder), { recursive: true });
    chmodSync(path.join(root, 'tmp'), 0o1777);
    const { sharedObjects } = process.report.getReport() as unknown as { sharedObjects: string[] };
    const libraries = sharedObjects.filter((file) => path.isAbsolute(file) && /\.so(\.|$)/.test(file));
    for (const file of libraries) cpSync(realpathSync(file), path.join(root, file));
    cpSync(realpathSync(process.execPath), path.join(root, 'usr/bin/node'));
    const archive = execFileSync('tar', ['-C', root, '-cf', '-', '.'], { maxBuffer: 2 ** 30 });
    execFileSync(engine, ['import', '--quiet', '--change', 'ENV PATH=/usr/bin', '-', image], { input: archive });
    return image;
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}
