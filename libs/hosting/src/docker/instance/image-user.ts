import type { Readable } from 'node:stream';
import tar from 'tar-stream';
import { type Engine, isStatus } from '../engine/engine.ts';
import { NOBODY } from './isolation.ts';

const MOST_BYTES = 2 ** 20;

/**
 * The user that a container of an image runs as, in numbers: the image's own, or `NOBODY` if that is root or cannot be found. A name is looked
 * up in the image's /etc/passwd, because any name may be user 0. `container`: any container of the image, running or not.
 */
export async function imageUser(engine: Engine, imageUserName: string, container: string, signal: AbortSignal): Promise<string> {
  const [name = '', group] = imageUserName.split(':');
  if (name === '') return NOBODY;
  const accounts = /^\d+$/.test(name) ? [] : parse(await readFile(engine, container, '/etc/passwd', signal));
  const account = accounts.find((one) => one.name === name);
  const uid = /^\d+$/.test(name) ? Number(name) : account?.id;
  if (!uid) return NOBODY;
  if (group === undefined || group === '') return `${uid}:${account?.group || uid}`;
  const gid = /^\d+$/.test(group)
    ? Number(group)
    : parse(await readFile(engine, container, '/etc/group', signal)).find((one) => one.name === group)?.id;
  return `${uid}:${gid || uid}`;
}

/** Whether `imageUser` needs a container. */
export const needsLookup = (imageUserName: string): boolean => imageUserName !== '' && !/^\d+(?::\d*)?$/.test(imageUserName);

function parse(text: string): { name: string; id: number; group: number }[] {
  return text.split('\n').map((line) => {
    const [name = '', , id, group] = line.split(':');
    return { name, id: Number(id), group: Number(group) };
  });
}

/** Empty if there is no such file. */
async function readFile(engine: Engine, container: string, path: string, signal: AbortSignal): Promise<string> {
  let archive: Readable;
  try {
    archive = await engine.stream({ method: 'GET', path: `/containers/${container}/archive`, query: { path } }, signal);
  } catch (error) {
    if (isStatus(error, 404)) return '';
    throw error;
  }
  const extract = archive.pipe(tar.extract());
  archive.on('error', (error) => extract.destroy(error));
  try {
    for await (const entry of extract) {
      if (entry.header.type !== 'file' || (entry.header.size ?? 0) > MOST_BYTES) return '';
      const chunks: Buffer[] = [];
      for await (const chunk of entry) chunks.push(chunk as Buffer);
      return Buffer.concat(chunks).toString();
    }
    return '';
  } catch (error) {
    throw engine.failure(error, signal);
  } finally {
    archive.destroy();
  }
}
