/** The names without their owners (`palestra/whodunit` → `whodunit`), unless the names alone would be ambiguous. */
export function namesWithoutOwner(names: readonly string[]): Map<string, string> {
  const short = new Map([...new Set(names)].map((name) => [name, name.split('/').at(-1)!]));
  const times = new Map<string, number>();
  for (const name of short.values()) times.set(name, (times.get(name) ?? 0) + 1);
  return new Map([...short].map(([name, one]) => [name, times.get(one)! > 1 ? name : one]));
}
