import { type ChosenFile, isAlwaysExcluded, PACK_LIMITS } from './pack-folder.ts';

/** The files of a folder that was dropped on the page. Folders that are never uploaded are not read. Throws for too many. */
export async function droppedFiles(root: FileSystemDirectoryEntry): Promise<ChosenFile[]> {
  const found: ChosenFile[] = [];
  const folders: [path: string, folder: FileSystemDirectoryEntry][] = [['', root]];
  for (let next = folders.pop(); next !== undefined; next = folders.pop()) {
    const [path, folder] = next;
    for (const entry of await entriesOf(folder)) {
      const name = `${path}${entry.name}`;
      if (isAlwaysExcluded(name)) continue;
      if (entry.isDirectory) folders.push([`${name}/`, entry as FileSystemDirectoryEntry]);
      else found.push({ name, file: await fileOf(entry as FileSystemFileEntry) });
      if (found.length > MOST_READ) throw new Error(`The folder has more than ${MOST_READ} files.`);
    }
  }
  return found;
}
/** .dockerignore may leave out most of them. */
const MOST_READ = 4 * PACK_LIMITS.maxFiles;

const fileOf = (entry: FileSystemFileEntry): Promise<File> => new Promise((resolve, reject) => entry.file(resolve, reject));

/** A reader returns at most a hundred entries at once, and none at the end. */
async function entriesOf(folder: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = folder.createReader();
  const all: FileSystemEntry[] = [];
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) return all;
    all.push(...some);
  }
}
