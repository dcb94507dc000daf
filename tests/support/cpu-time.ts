/** CPU milliseconds of this process. Limits on work use it, because other programs on the machine do not affect it. */
export function cpuTime(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
