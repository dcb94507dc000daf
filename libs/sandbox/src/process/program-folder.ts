import { rmSync } from 'node:fs';
import { chmod, copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** A folder of files for sandboxed processes, which run as other users and see nothing else. It also has an empty folder, `empty`. */
export interface ProgramFolder {
  path: string;
  copy(...files: string[]): Promise<void>;
  write(name: string, bytes: Uint8Array): Promise<void>;
  remove(): Promise<void>;
}

/** Removed at the end of this process. */
export async function makeProgramFolder(): Promise<ProgramFolder> {
  const folder = await mkdtemp(path.join(tmpdir(), 'palestra-sandbox-'));
  await chmod(folder, 0o755);
  await mkdir(path.join(folder, 'empty'), { mode: 0o555 });
  const removeNow = () => rmSync(folder, { recursive: true, force: true });
  process.once('exit', removeNow);
  const inside = (file: string) => path.join(folder, path.basename(file));
  return {
    path: folder,
    async copy(...files) {
      const copies = files.map(async (file) => {
        await copyFile(file, inside(file));
        await chmod(inside(file), 0o444);
      });
      await Promise.all(copies);
    },
    write: (name, bytes) => writeFile(inside(name), bytes, { mode: 0o444 }),
    async remove() {
      process.off('exit', removeNow);
      await rm(folder, { recursive: true, force: true });
    },
  };
}
