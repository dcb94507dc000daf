import { readFileSync, readdirSync } from 'node:fs';

const CLOCK_TICKS = 100;

/** Reads /proc of a process; null if it has ended. */
function readProcess(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name is in brackets and may contain any character; the fields follow it.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const resident = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
    return {
      pid: Number(pid),
      name: stat.slice(stat.indexOf('(') + 1, stat.lastIndexOf(')')),
      parent: Number(fields[1]),
      cpuSeconds: (Number(fields[11]) + Number(fields[12])) / CLOCK_TICKS,
      rssBytes: Number(resident?.[1] ?? 0) * 1024,
    };
  } catch {
    return null;
  }
}

/** Memory and total CPU time of a process (Linux), and of all its descendants except PostgreSQL. */
export function usageOf(pid) {
  const processes = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(readProcess)
    .filter((found) => found !== null);
  const family = new Set([pid]);
  for (let size = 0; size < family.size;) {
    size = family.size;
    for (const { pid: id, parent, name } of processes) if (family.has(parent) && name !== 'postgres') family.add(id);
  }
  const own = processes.filter((found) => family.has(found.pid));
  const sum = (key) => own.reduce((total, found) => total + found[key], 0);
  const service = own.find((found) => found.pid === pid);
  return { service, all: { rssBytes: sum('rssBytes'), cpuSeconds: sum('cpuSeconds') } };
}
