import { readFileSync } from 'node:fs';
import vm from 'node:vm';
import { describe, expect, test } from 'vitest';

/**
 * The realm as the worker makes it, without Python in it: what JavaScript that had taken over could reach. Attempts are scripts of the same context;
 * that there can be none is the first test.
 */
function makeRealm() {
  const context = vm.createContext(Object.create(null) as object, { codeGeneration: { strings: false, wasm: true } });
  const text = readFileSync(new URL('realm.mjs', import.meta.url), 'utf8').replace('export function', 'function');
  const make = vm.runInContext(`${text}; realm`, context) as (host: object, limits: object) => object;
  const host = {
    now: () => 1,
    random: (length: number) => new Uint8Array(length),
    decode: (bytes: Uint8Array, label: string) => new TextDecoder(label).decode(bytes),
    encode: (said: string) => new TextEncoder().encode(said),
    file: () => new Uint8Array(8),
  };
  make(host, { memoryBytes: 1 << 20, fileBytes: 1, outputCharacters: 1 });
  return (attempt: string) => vm.runInContext(attempt, context) as unknown;
}

describe('in the realm', () => {
  test.each(['eval("1")', 'Function("return 1")()', '(() => {}).constructor("return 1")()', '(async () => {}).constructor("return 1")()'])(
    '%s makes no code',
    (attempt) => {
      expect(() => makeRealm()(attempt)).toThrow('Code generation from strings disallowed');
    },
  );

  test.each(['process', 'require', 'fetch', 'WebSocket', 'XMLHttpRequest', 'Buffer', 'setInterval', 'setImmediate', 'Worker'])(
    'there is no %s',
    (name) => expect(makeRealm()(`typeof ${name}`)).toBe('undefined'),
  );

  // An object of the host is none of the realm's own classes.
  test.each([
    [
      'random bytes',
      '(() => { let got; crypto.getRandomValues({ byteLength: 4, set: (given) => (got = given) }); return got; })()',
      'Uint8Array',
    ],
    [
      'random bytes, with the class replaced,',
      '(() => { let got; const { Uint8Array: Own } = globalThis; globalThis.Uint8Array = function (given) { got = given; }; ' +
        'crypto.getRandomValues({ byteLength: 4, set: (given) => (got ??= given) }); globalThis.Uint8Array = Own; return got; })()',
      'Uint8Array',
    ],
    ['a file', 'readbuffer("/x")', 'ArrayBuffer'],
    ['encoded text', 'new TextEncoder().encode("x")', 'Uint8Array'],
    ['an error of the host', '(() => { try { new TextDecoder("nonsense").decode(); } catch (error) { return error; } })()', 'Error'],
    ['the console', 'console.log', 'Function'],
    ['the clock', 'performance.now', 'Function'],
  ])('%s are its own', (_, attempt, kind) => {
    expect(makeRealm()(`(${attempt}) instanceof ${kind}`)).toBe(true);
  });

  test('hides the stack frames of the host', () => {
    const ask = makeRealm();
    expect(
      ask('(() => { let seen = null; Error.prepareStackTrace = (_, frames) => (seen = frames); new Error("x").stack; return seen; })()'),
    ).toBeNull();
  });

  test('lets memory grow up to the limit', () => {
    const ask = makeRealm();
    expect(() => ask('new WebAssembly.Memory({ initial: 1, maximum: 100 }).grow(16)')).toThrow('memory limit');
    expect(ask('new WebAssembly.Memory({ initial: 1, maximum: 100 }).grow(15)')).toBe(1);
  });
});
