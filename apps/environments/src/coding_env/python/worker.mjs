import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import vm from 'node:vm';
import { parentPort, workerData } from 'node:worker_threads';
import { prelude } from './prelude.mjs';
import { realm } from './realm.mjs';

/**
 * One interpreter. Says `{ image }` when it is ready (the memory to start others from if it was given none, else null), then answers every
 * `{ code }` with `{ result }`, JSON text, or null if the interpreter is beyond use.
 */
const port = parentPort;
const { image, limits } = workerData;
const folder = path.dirname(fileURLToPath(import.meta.resolve('pyodide/package.json')));
const read = (name) => readFile(path.join(folder, name));

const [glue, loader, lock, wasm, library] = await Promise.all([
  read('pyodide.asm.mjs'),
  read('pyodide.js'),
  read('pyodide-lock.json'),
  read('pyodide.asm.wasm'),
  read('python_stdlib.zip'),
]);
const files = new Map([
  ['/pyodide.asm.wasm', wasm],
  ['/python_stdlib.zip', library],
]);
const host = {
  now: () => performance.now(),
  random: (length) => crypto.getRandomValues(new Uint8Array(length)),
  decode: (bytes, label) => new TextDecoder(label).decode(bytes),
  encode: (text) => new TextEncoder().encode(text),
  file: (name) => files.get(name),
};

const context = vm.createContext(Object.create(null), { codeGeneration: { strings: false, wasm: true } });
const inside = vm.runInContext(`(${realm})`, context, { filename: 'realm' })(host, limits);
vm.runInContext(asScript(String(glue)), context, { filename: 'pyodide.asm' });
vm.runInContext(withoutImports(String(loader)), context, { filename: 'pyodide' });
// There are no packages but the standard library.
const made = await inside.start(prelude, JSON.stringify({ ...JSON.parse(String(lock)), packages: {} }), image);
files.clear();
disarm();

port.on('message', ({ code }) => {
  let result = null;
  try {
    result = inside.run(code);
  } catch {
    // Nothing of what it threw is looked at: it is not ours.
  }
  port.postMessage({ result: typeof result === 'string' ? result : null });
});
port.postMessage({ image: made === null ? null : shared(made) });

/** Should anything of this realm be reached after all, there is little to find, and no way to make code from strings. */
function disarm() {
  const names = [
    'process',
    'fetch',
    'WebSocket',
    'EventSource',
    'BroadcastChannel',
    'MessageChannel',
    'Buffer',
    'navigator',
    'eval',
    'Function',
  ];
  for (const name of names) Reflect.deleteProperty(globalThis, name);
  for (const made of [() => {}, async () => {}, function* () {}, async function* () {}])
    Reflect.deleteProperty(Object.getPrototypeOf(made), 'constructor');
}

/** The module as a script: what it exports becomes a global. */
function asScript(source) {
  const script = withoutImports(source).replace(/\bexport default (\w+);\s*$/, 'globalThis.createPyodideModule = $1;');
  if (script.includes('export default')) throw new Error('this version of Pyodide is not known');
  return script;
}

/** Where there is no text that imports, nothing can be imported, for no text can be added. */
function withoutImports(source) {
  return source
    .replaceAll(/\bimport\.meta\.url\b/g, '"/"')
    .replaceAll(/\bimport\.meta\b/g, '({})')
    .replaceAll(/\bimport\s*(?:\/\*.*?\*\/)?\s*\(/g, 'noImport(');
}

function shared(bytes) {
  const copy = new SharedArrayBuffer(bytes.length);
  new Uint8Array(copy).set(bytes);
  return copy;
}
