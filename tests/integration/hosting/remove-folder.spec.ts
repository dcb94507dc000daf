import { execFile } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const MODULE = pathToFileURL(path.resolve(import.meta.dirname, '../../../libs/hosting/dist/process/remove-folder.js')).href;
const NOBODY = 65_534;

/** Root may remove everything, so a process without its rights does it. */
test('a folder goes with what its owner has made read-only, and no link is followed', async () => {
  const isRoot = process.getuid!() === 0;
  const root = mkdtempSync(path.join(tmpdir(), 'palestra-remove-'));
  const other = path.join(root, 'other');
  const folder = path.join(root, 'instance');
  const secrets = path.join(folder, 'a', 'secrets');
  mkdirSync(secrets, { recursive: true });
  mkdirSync(other, { mode: 0o500 });
  writeFileSync(path.join(secrets, 'TOKEN'), 'x', { mode: 0o400 });
  const link = "require('fs').symlinkSync(process.argv[1], process.argv[2])";
  const run = (...args: string[]) => promisify(execFile)(process.execPath, args, { cwd: '/', ...(isRoot && { uid: NOBODY, gid: NOBODY }) });
  if (isRoot) for (const one of [root, other, folder, path.dirname(secrets), secrets]) chownSync(one, NOBODY, NOBODY);
  await run('-e', link, other, path.join(folder, 'link'));
  chmodSync(secrets, 0o500);
  chmodSync(path.dirname(secrets), 0o000);
  const code = `import { removeFolder } from ${JSON.stringify(MODULE)}; await removeFolder(${JSON.stringify(folder)});`;
  await run('--input-type=module', '-e', code);
  expect([existsSync(folder), existsSync(other)]).toEqual([false, true]);
  await run('-e', "require('fs').rmSync(process.argv[1], { recursive: true })", root).catch(() => {});
});
