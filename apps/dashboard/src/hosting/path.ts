/** What `@balena/dockerignore` uses of the module `path` of Node.js (vite.config.ts). Names of files have "/" in a browser. */
export const sep = '/';

export function normalize(file: string): string {
  const parts: string[] = [];
  for (const part of file.split('/')) {
    if (part === '' || part === '.') continue;
    if (part === '..' && parts.length > 0 && parts.at(-1) !== '..') parts.pop();
    else if (part !== '..' || !file.startsWith('/')) parts.push(part);
  }
  const path = parts.join('/');
  if (file.startsWith('/')) return `/${path}`;
  return path === '' ? '.' : file.endsWith('/') ? `${path}/` : path;
}

/** The folder of a file: `.` at the top. */
export function dirname(file: string): string {
  const path = file.replace(/\/+$/, '');
  const at = path.lastIndexOf('/');
  if (at === -1) return file.startsWith('/') ? '/' : '.';
  return path.slice(0, at) || '/';
}
