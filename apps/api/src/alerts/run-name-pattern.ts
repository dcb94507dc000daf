/** Whether a name matches a pattern in which `*` stands for any text. Linear: each part is searched once, from the left. */
export function matchesName(pattern: string | null, name: string): boolean {
  if (pattern === null) return true;
  const parts = pattern.split('*');
  if (parts.length === 1) return pattern === name;
  const [first, last] = [parts[0]!, parts.at(-1)!];
  if (name.length < first.length + last.length || !name.startsWith(first) || !name.endsWith(last)) return false;
  const end = name.length - last.length;
  let at = first.length;
  for (const part of parts.slice(1, -1)) {
    const found = name.indexOf(part, at);
    if (found < 0 || found + part.length > end) return false;
    at = found + part.length;
  }
  return true;
}
