import { mkdir, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Command } from 'commander';
import { UsageError } from '../../settings.ts';
import { kitFiles } from './templates-kit.ts';
import { pythonFiles } from './templates-python.ts';

export function initCommand(): Command {
  return new Command('init')
    .description('make a new environment, ready to be served')
    .argument('<name>', 'also of its folder: letters, digits, "_" and "-"')
    .option('--dir <folder>', 'where to make the folder', '.')
    .option('--python', 'an OpenEnv environment in Python (without: TypeScript)', false)
    .action(init);
}

async function init(name: string, { dir, python }: { dir: string; python: boolean }): Promise<void> {
  if (!/^[A-Za-z][\w-]{2,63}$/.test(name)) throw new UsageError(`${name}: a name has 3 to 64 letters, digits, "_" and "-", a letter first`);
  if (python && !/^[a-z]\w*$/.test(name)) throw new UsageError(`${name}: to Python a name has small letters, digits and "_"`);
  const folder = path.join(dir, name);
  const there = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw new UsageError(`${folder}: ${error.code === 'ENOTDIR' ? 'is a file' : error.message}`);
  });
  if (there.length > 0) throw new UsageError(`${folder} is there already, and not empty`);
  for (const [file, content] of Object.entries(python ? pythonFiles(name) : kitFiles(name))) {
    const place = path.join(folder, file);
    await mkdir(path.dirname(place), { recursive: true });
    await writeFile(place, content);
  }
  process.stdout.write(`${folder}\n`);
  process.stderr.write(`next: palestra env validate ${folder}, palestra env serve ${folder}\n`);
}
