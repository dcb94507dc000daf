/** Limit of the parts of an RE2 regular expression with its repetitions expanded. Real ones have a few dozen. */
export const MAX_REGEX_SIZE = 2_000;

const REPEAT = /^\{(\d+)(?:,(\d*))?\}/;

/**
 * The approximate number of parts of `pattern` with `a{1000}` expanded. Matching takes time proportional to it, and compiling takes
 * memory; RE2 limits neither. Does not validate the pattern.
 */
export function regexSize(pattern: string): number {
  const outer: number[] = [];
  let total = 0;
  let last = 0;
  const add = (size: number) => {
    total += size;
    last = size;
  };
  for (let at = 0; at < pattern.length; at += 1) {
    const repeat = pattern[at] === '{' ? REPEAT.exec(pattern.slice(at, at + 20)) : null;
    if (repeat !== null) {
      const times = Math.max(Number(repeat[1]), Number(repeat[2] || 0));
      total += last * Math.max(0, times - 1);
      last *= Math.max(1, times);
      at += repeat[0].length - 1;
    } else if (pattern[at] === '\\') {
      at = pattern[at + 1] === 'Q' ? at + 1 : endOfEscape(pattern, at);
      add(1);
    } else if (pattern[at] === '[') {
      at = endOfClass(pattern, at);
      add(1);
    } else if (pattern[at] === '(') {
      outer.push(total);
      total = 0;
    } else if (pattern[at] === ')') {
      const inner = total + 2;
      total = outer.pop() ?? 0;
      add(inner);
    } else if ('*+?'.includes(pattern[at]!)) {
      total += 1;
      last += 1;
    } else add(1);
  }
  return outer.reduce((sum, size) => sum + size, total);
}

/** `\p{Greek}` is one part. */
function endOfEscape(pattern: string, at: number): number {
  if (!/[pPx]/.test(pattern[at + 1] ?? '') || pattern[at + 2] !== '{') return at + 1;
  const end = pattern.indexOf('}', at);
  return end === -1 ? pattern.length : end;
}

function endOfClass(pattern: string, start: number): number {
  // A bracket in first position is a character of the class.
  let at = start + (pattern[start + 1] === '^' ? 2 : 1) + 1;
  for (; at < pattern.length && pattern[at] !== ']'; at += 1) {
    if (pattern[at] === '\\') at += 1;
    else if (pattern.startsWith('[:', at)) at = Math.max(at, pattern.indexOf(':]', at) + 1);
  }
  return at;
}
