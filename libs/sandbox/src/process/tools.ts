import { accessSync, constants } from 'node:fs';
import path from 'node:path';

/** User ids that no Linux distribution allocates (between those of systemd-homed and DynamicUser=). */
const FIRST_UID = 60_600;
const UIDS = 500;
let taken = 0;

/** Returns a user id that no other program uses, nor another sandboxed process while there are fewer than 500. */
export const nextUserId = (): number => FIRST_UID + (taken++ % UIDS);

/** Path of an installed program; null if there is none. */
export function findTool(name: string): string | null {
  const folders = (process.env['PATH'] ?? '/usr/local/bin:/usr/bin:/bin').split(':');
  const isExecutable = (file: string) => {
    try {
      accessSync(file, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  };
  return folders.map((folder) => path.resolve(folder, name)).find(isExecutable) ?? null;
}
