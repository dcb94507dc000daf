import { MAX_NAME_BYTES, MAX_PATH_BYTES, sourceInvalid } from './source-limits.ts';

/**
 * The parts of a path in an archive. Throws `source_invalid` for a path that leaves the folder, or that a file system or Git would read as
 * another one. Empty for the folder itself.
 */
export function safeParts(name: string): string[] {
  const shown = JSON.stringify(name.length > 200 ? `${name.slice(0, 200)}…` : name);
  if (name.includes('\0')) throw sourceInvalid(`The path ${shown} has a NUL character.`);
  if (name.includes('\\')) throw sourceInvalid(`The path ${shown} has a backslash. Use "/" between folders.`);
  if (name.startsWith('/')) throw sourceInvalid(`The path ${shown} is absolute. Pack the folder with relative paths.`);
  if (Buffer.byteLength(name) > MAX_PATH_BYTES) throw sourceInvalid(`The path ${shown} is longer than ${MAX_PATH_BYTES} bytes.`);
  const parts = name.split('/').filter((part) => part !== '' && part !== '.');
  for (const part of parts) {
    if (part === '..') throw sourceInvalid(`The path ${shown} leaves the folder.`);
    if (part.toLowerCase() === '.git')
      throw sourceInvalid(`The path ${shown} is inside a Git repository's data. Pack the folder without .git.`);
    if (Buffer.byteLength(part) > MAX_NAME_BYTES) throw sourceInvalid(`The path ${shown} has a name longer than ${MAX_NAME_BYTES} bytes.`);
  }
  return parts;
}

/**
 * Whether a link at `name` (relative, with "/", below no other link) that says `target` stays inside its folder. ".." is accepted at the
 * beginning only: after the name of another link it would lead somewhere else than the text says.
 */
export function staysInside(name: string, target: string): boolean {
  if (target === '' || target.startsWith('/') || target.includes('\\') || target.includes('\0')) return false;
  const parts = target.split('/').filter((part) => part !== '' && part !== '.');
  const ups = parts.findIndex((part) => part !== '..');
  const up = ups === -1 ? parts.length : ups;
  return up < name.split('/').length && !parts.slice(up).includes('..');
}
