import { accessSync, constants } from 'node:fs';
import path from 'node:path';

/** Users that no Linux distribution allocates (between those of systemd-homed and of DynamicUser=). */
const FIRST_UID = 60_600;
const UIDS = 500;
let taken = 0;

/** Of a user that no other program on the machine runs as, nor another sandboxed process as long as there are fewer than 500. */
export const nextUserId = (): number => FIRST_UID + (taken++ % UIDS);

/** The full path of a program of the machine, null if there is none. */
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
