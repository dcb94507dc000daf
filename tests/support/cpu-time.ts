/** Milliseconds of the processor that this process has used. Bounds on work are measured by it: other programs on the machine do not add to it. */
export function cpuTime(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
