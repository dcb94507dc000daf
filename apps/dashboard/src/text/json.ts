/** JSON of strangers: bounded in size and depth, without prototypes. */

/** Larger texts are shown as lines; parsing them would hold up the page. Characters. */
export const MAX_JSON_CHARACTERS = 200_000;
const MAX_DEPTH = 200;

/** Nesting of a JSON text, brackets in strings left out. Linear. */
function depthOf(text: string): number {
  let [depth, deepest, inString] = [0, 0, false];
  for (let i = 0; i < text.length; i += 1) {
    const character = text.charCodeAt(i);
    if (inString) {
      if (character === 92) i += 1;
      else if (character === 34) inString = false;
    } else if (character === 34) inString = true;
    else if (character === 123 || character === 91) deepest = Math.max(deepest, (depth += 1));
    else if (character === 125 || character === 93) depth -= 1;
  }
  return deepest;
}

/** Objects without a prototype, so that a key `__proto__` is a key like any other. */
function bare(_key: string, value: unknown): unknown {
  return value !== null && typeof value === 'object' && !Array.isArray(value) ? Object.assign(Object.create(null) as object, value) : value;
}

/** The value, or undefined for what is no JSON, longer than `most`, or nested deeper than 200. */
export function parseJson(text: string, most = MAX_JSON_CHARACTERS): unknown {
  if (text.length > most || depthOf(text) > MAX_DEPTH) return undefined;
  try {
    return JSON.parse(text, bare) as unknown;
  } catch {
    return undefined;
  }
}

/** An object or array, which is worth a tree; undefined for everything else. */
export function parseTree(text: string, most?: number): object | undefined {
  const first = text.trimStart()[0];
  if (first !== '{' && first !== '[') return undefined;
  const value = parseJson(text, most);
  return value !== null && typeof value === 'object' ? value : undefined;
}

/** Arguments of a call by key, strings as they are; null when the text is not a JSON object. */
export function argumentsOf(text: string | null): [name: string, value: string][] | null {
  const value = text === null ? undefined : parseJson(text);
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return null;
  return Object.entries(value).map(([name, argument]) => [name, typeof argument === 'string' ? argument : JSON.stringify(argument)]);
}
