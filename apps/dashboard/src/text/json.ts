/** Parses untrusted JSON: limited size and depth, objects without prototypes. */

/** Characters. Parsing a longer text would block the page. */
export const MAX_JSON_CHARACTERS = 200_000;
const MAX_DEPTH = 200;

/** The nesting depth of a JSON text, ignoring brackets in strings. */
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

/** Removes the prototype of objects, so that `__proto__` is an ordinary key. */
function withoutPrototype(_key: string, value: unknown): unknown {
  return value !== null && typeof value === 'object' && !Array.isArray(value) ? Object.assign(Object.create(null) as object, value) : value;
}

/** The value; undefined for invalid JSON, for more than `maxCharacters`, and for more than 200 levels. */
export function parseJson(text: string, maxCharacters = MAX_JSON_CHARACTERS): unknown {
  if (text.length > maxCharacters || depthOf(text) > MAX_DEPTH) return undefined;
  try {
    return JSON.parse(text, withoutPrototype) as unknown;
  } catch {
    return undefined;
  }
}

/** The value if it is an object or array, otherwise undefined. */
export function parseTree(text: string, maxCharacters?: number): object | undefined {
  const first = text.trimStart()[0];
  if (first !== '{' && first !== '[') return undefined;
  const value = parseJson(text, maxCharacters);
  return value !== null && typeof value === 'object' ? value : undefined;
}

/** The members of a JSON object; null if the text is not one. */
export function membersOf(text: string | null): [name: string, value: unknown][] | null {
  const value = text === null ? undefined : parseJson(text);
  return value === null || typeof value !== 'object' || Array.isArray(value) ? null : Object.entries(value);
}

/** The arguments of a call as texts, strings without quotes; null if the text is not a JSON object. */
export function argumentsOf(text: string | null): [name: string, value: string][] | null {
  const members = membersOf(text);
  return members && members.map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]);
}
