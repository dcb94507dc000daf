import { readdir, readFile } from 'node:fs/promises';

/** Processes of this machine, as Linux shows them in /proc. */

const TICKS_PER_SECOND = 100;

export interface ProcessEntry {
  pid: number;
  session: number;
  /** Ticks since the start of the machine: with `pid` it names a process. */
  startTicks: number;
  /** Seconds of processor time. */
  cpuSeconds: number;
}

/** Another one after each start of the machine. */
export const bootId = async (): Promise<string> => (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();

/** Null if there is no such process, or only its exit status is left. */
export async function processEntry(pid: number): Promise<ProcessEntry | null> {
  const text = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => null);
  if (text === null) return null;
  // The name of the program, in parentheses, may have any characters.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const field = (number: number) => Number(fields[number - 3]);
  if (fields[0] === 'Z' || fields[0] === 'X') return null;
  return { pid, session: field(6), startTicks: field(22), cpuSeconds: (field(14) + field(15)) / TICKS_PER_SECOND };
}

/** The processes whose environment has all of these variables; `only`: just these processes. */
export async function processesWith(variables: Readonly<Record<string, string>>, only?: readonly number[]): Promise<ProcessEntry[]> {
  const wanted = Object.entries(variables).map(([name, value]) => `\0${name}=${value}\0`);
  const pids = only ?? (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  const found = await Promise.all(
    pids.map(async (pid) => {
      // Not readable: a process of another user.
      const environment = `\0${await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '')}\0`;
      return wanted.every((one) => environment.includes(one)) ? processEntry(pid) : null;
    }),
  );
  return found.filter((one) => one !== null);
}

/** Values of a variable in the environments of all processes. */
export async function valuesOf(name: string): Promise<Set<string>> {
  const values = new Set<string>();
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid)) continue;
    const environment = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '');
    for (const pair of environment.split('\0')) if (pair.startsWith(`${name}=`)) values.add(pair.slice(name.length + 1));
  }
  return values;
}

/** Megabytes of memory that the processes have now. */
export async function memoryOf(processes: readonly ProcessEntry[]): Promise<number> {
  const sizes = await Promise.all(
    processes.map(async ({ pid }) =>
      Number(/^VmRSS:\s+(\d+)/m.exec(await readFile(`/proc/${pid}/status`, 'utf8').catch(() => ''))?.[1] ?? 0),
    ),
  );
  return sizes.reduce((sum, kilobytes) => sum + kilobytes, 0) / 1024;
}

/** Sends a signal. Does nothing if the process has ended. */
export function kill(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
