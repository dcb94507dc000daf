import { mkdir, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type Printed, printOne } from '../../output.ts';
import { UsageError } from '../../settings.ts';
import { quoted } from '../../shell-word.ts';
import { kitFiles } from './templates-kit.ts';
import { openenvFiles } from './templates-openenv.ts';
import { orsFiles } from './templates-ors.ts';

const FILES = { typescript: kitFiles, openreward: orsFiles, openenv: openenvFiles };
/** What to type in the new folder. */
const NEXT = {
  typescript: ['npm install', 'npm run dev'],
  openreward: ['python3 -m venv .venv && .venv/bin/pip install -r requirements.txt', 'palestra env dev'],
  openenv: ['python3 -m venv .venv && .venv/bin/pip install -e .', 'palestra env dev'],
};

type Language = 'typescript' | 'openreward' | 'openenv';

export async function init(name: string, options: Printed & { dir: string; python: boolean; openenv: boolean }): Promise<void> {
  const { dir } = options;
  const language: Language = options.openenv ? 'openenv' : options.python ? 'openreward' : 'typescript';
  if (!/^[A-Za-z][\w-]{2,63}$/.test(name))
    throw new UsageError(`Invalid name "${name}". A name has 3 to 64 letters, digits, "_" and "-", and begins with a letter.`);
  if (language === 'openenv' && !/^[a-z]\w*$/.test(name))
    throw new UsageError(`Invalid name "${name}". The name of a Python package has lower-case letters, digits and "_".`);
  const folder = path.join(dir, name);
  const existing = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw new UsageError(`${folder}: ${error.code === 'ENOTDIR' ? 'is a file' : error.message}`);
  });
  if (existing.length > 0) throw new UsageError(`${folder} exists and is not empty. Choose another name or --dir.`);
  const files = Object.entries(FILES[language](name));
  for (const [file, content] of files) {
    const target = path.join(folder, file);
    await mkdir(path.dirname(target), { recursive: true });
    await writeFile(target, content);
  }
  const next = [`cd ${quoted(folder)}`, ...NEXT[language]];
  await printOne(options, { name, language, folder, files: files.map(([file]) => file), next }, () => {
    process.stdout.write(`${folder}\n`);
    process.stderr.write(`Next:\n${next.map((line) => `  ${line}\n`).join('')}`);
  });
}
