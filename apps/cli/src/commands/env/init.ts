import { mkdir, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Command } from 'commander';
import { UsageError } from '../../settings.ts';
import { kitFiles } from './templates-kit.ts';
import { pythonFiles } from './templates-python.ts';

export function initCommand(): Command {
  return new Command('init')
    .description('create a new environment that can be served')
    .argument('<name>', 'name of the environment and its folder: letters, digits, "_" and "-"')
    .option('--dir <folder>', 'where to create the folder', '.')
    .option('--python', 'create an OpenEnv environment in Python (default: TypeScript)', false)
    .action(init);
}

async function init(name: string, { dir, python }: { dir: string; python: boolean }): Promise<void> {
  if (!/^[A-Za-z][\w-]{2,63}$/.test(name))
    throw new UsageError(`Invalid name "${name}". A name has 3 to 64 letters, digits, "_" and "-", and begins with a letter.`);
  if (python && !/^[a-z]\w*$/.test(name))
    throw new UsageError(`Invalid name "${name}". A Python name has lower-case letters, digits and "_".`);
  const folder = path.join(dir, name);
  const existing = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw new UsageError(`${folder}: ${error.code === 'ENOTDIR' ? 'is a file' : error.message}`);
  });
  if (existing.length > 0) throw new UsageError(`${folder} exists and is not empty. Choose another name or --dir.`);
  for (const [file, content] of Object.entries(python ? pythonFiles(name) : kitFiles(name))) {
    const target = path.join(folder, file);
    await mkdir(path.dirname(target), { recursive: true });
    await writeFile(target, content);
  }
  process.stdout.write(`${folder}\n`);
  process.stderr.write(`Next: palestra env validate ${folder}, palestra env serve ${folder}\n`);
}
