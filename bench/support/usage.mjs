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
      command: readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' '),
      parent: Number(fields[1]),
      cpuSeconds: (Number(fields[11]) + Number(fields[12])) / CLOCK_TICKS,
      endedCpuSeconds: (Number(fields[13]) + Number(fields[14])) / CLOCK_TICKS,
      rssBytes: Number(resident?.[1] ?? 0) * 1024,
    };
  } catch {
    return null;
  }
}

/** `endedCpuSeconds` is the time of children that have ended, as connections of PostgreSQL do. */
const sumPostgres = (processes) => {
  const { rssBytes, cpuSeconds } = sum(processes);
  return { rssBytes, cpuSeconds: processes.reduce((total, { endedCpuSeconds }) => total + endedCpuSeconds, cpuSeconds) };
};
const sum = (processes) => ({
  rssBytes: processes.reduce((total, { rssBytes }) => total + rssBytes, 0),
  cpuSeconds: processes.reduce((total, { cpuSeconds }) => total + cpuSeconds, 0),
});

/** The process and all its descendants. */
export function familyOf(pid) {
  const processes = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(readProcess)
    .filter((found) => found !== null);
  const family = new Set([pid]);
  for (let size = 0; size < family.size;) {
    size = family.size;
    for (const { pid: id, parent } of processes) if (family.has(parent)) family.add(id);
  }
  return processes.filter((found) => family.has(found.pid));
}

/**
 * Memory and total CPU time (Linux) of a service: of its own process, of its worker, of PostgreSQL, whose memory counts shared pages once
 * for each process, and of all but PostgreSQL.
 */
export function usageOf(pid) {
  const family = familyOf(pid);
  const isWorker = ({ pid: id, command }) => id !== pid && /apps\/(?:worker\/dist\/main|api\/dist\/worker)/.test(command);
  return {
    service: sum(family.filter((found) => found.pid === pid)),
    worker: sum(family.filter(isWorker)),
    postgres: sumPostgres(family.filter(({ name }) => name === 'postgres')),
    all: sum(family.filter(({ name }) => name !== 'postgres')),
  };
}

/** Cores that each part used between two usages. */
export function coresBetween(before, after, seconds) {
  return Object.fromEntries(Object.keys(after).map((part) => [part, (after[part].cpuSeconds - before[part].cpuSeconds) / seconds]));
}

/** Samples the memory of a service until `end` is called, which returns the megabytes of the service and its worker together. */
export function sampleMemory(pid, periodMs = 500) {
  const megabytes = [];
  const sample = () => {
    const { service, worker } = usageOf(pid);
    if (service.rssBytes > 0) megabytes.push((service.rssBytes + worker.rssBytes) / 1e6);
  };
  sample();
  const timer = setInterval(sample, periodMs);
  return {
    megabytes,
    end() {
      clearInterval(timer);
      sample();
      return megabytes;
    },
  };
}
