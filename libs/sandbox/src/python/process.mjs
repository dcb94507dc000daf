import { readFileSync } from 'node:fs';
import path from 'node:path';
import vm from 'node:vm';
import { prelude } from './prelude.mjs';
import { realm } from './realm.mjs';

/**
 * The program of a sandboxed process (process/sandboxed-process.ts). Its folder has this file, Pyodide and, once it exists, the memory
 * image of a started interpreter. A message is its length (four bytes, big-endian) and its bytes. `node process.mjs '{"limits": ...,
 * "image": null}'` sends an image for other interpreters and ends. With the name of an image it sends `null` when it is ready, then one
 * JSON text per received program: `{"exitCode","parses","stdout","stderr"}`, or `null` if it is unusable.
 */
const { limits, image } = JSON.parse(process.argv[2]);
const { stdin, stdout } = process;
const read = (name) => readFileSync(path.join(import.meta.dirname, name));

function send(bytes) {
  const head = Buffer.alloc(4);
  head.writeUInt32BE(bytes.length);
  stdout.write(head);
  stdout.write(bytes);
}

const files = new Map(['pyodide.asm.wasm', 'python_stdlib.zip'].map((name) => [`/${name}`, read(name)]));
const host = {
  now: () => performance.now(),
  random: (length) => crypto.getRandomValues(new Uint8Array(length)),
  decode: (bytes, label) => new TextDecoder(label).decode(bytes),
  encode: (text) => new TextEncoder().encode(text),
  file: (name) => files.get(name),
};

const context = vm.createContext(Object.create(null), { codeGeneration: { strings: false, wasm: true } });
const inside = vm.runInContext(`(${realm})`, context, { filename: 'realm' })(host, limits);
vm.runInContext(asScript(String(read('pyodide.asm.mjs'))), context, { filename: 'pyodide.asm' });
vm.runInContext(withoutImports(String(read('pyodide.js'))), context, { filename: 'pyodide' });
// Only the standard library is available.
const lockFile = JSON.stringify({ ...JSON.parse(String(read('pyodide-lock.json'))), packages: {} });
const made = await inside.start(prelude, lockFile, image === null ? null : read(image));
files.clear();
if (made === null) {
  answerPrograms();
  send(Buffer.from('null'));
  // Most memory was needed only for the start.
  setImmediate(() => globalThis.gc());
} else send(made);

function answerPrograms() {
  let received = Buffer.alloc(0);
  stdin.on('data', (data) => {
    received = Buffer.concat([received, data]);
    if (received.length < 4 || received.length < 4 + received.readUInt32BE()) return;
    const code = received.toString('utf8', 4);
    received = Buffer.alloc(0);
    send(Buffer.from(run(code)));
  });
  // The service has ended.
  stdin.on('end', () => process.exit());
}

function run(code) {
  try {
    return String(inside.run(code));
  } catch {
    return 'null';
  }
}

/** Converts a module to a script: its exports become globals. */
function asScript(source) {
  const script = withoutImports(source).replace(/\bexport default (\w+);\s*$/, 'globalThis.createPyodideModule = $1;');
  if (script.includes('export default')) throw new Error('this version of Pyodide is not known');
  return script;
}

/** The context has no module loader. */
function withoutImports(source) {
  return source
    .replaceAll(/\bimport\.meta\.url\b/g, '"/"')
    .replaceAll(/\bimport\.meta\b/g, '({})')
    .replaceAll(/\bimport\s*(?:\/\*.*?\*\/)?\s*\(/g, 'noImport(');
}
