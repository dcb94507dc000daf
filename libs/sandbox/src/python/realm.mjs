/**
 * The world that Python runs in, seen from inside. This function's text is compiled in a fresh V8 context, which has ECMAScript and WebAssembly
 * and nothing else, as a plain JavaScript shell has. It gives Pyodide what it needs and enforces the limits that Python notices. It is no security
 * boundary (`node:vm` is none): a program that leaves it is master of a process that has nothing (process/).
 *
 * @param {{ now(): number, random(length: number): Uint8Array, decode(bytes: Uint8Array, label: string): string,
 *   encode(text: string): Uint8Array, file(name: string): Uint8Array }} host
 * @param {{ memoryBytes: number, fileBytes: number, outputCharacters: number }} limits
 */
export function realm(host, limits) {
  'use strict';
  // Stored first, because Python could replace these names and would get what the host returns.
  const { Uint8Array: Bytes, String: Text } = globalThis;
  // Node passes its own objects to it.
  Object.defineProperty(Error, 'prepareStackTrace', { value: undefined, writable: false, configurable: false });
  const quietly =
    (ask) =>
    (...values) => {
      try {
        return ask(...values);
      } catch {
        throw new Error('not available');
      }
    };
  const [now, random, decode, encode, file] = [host.now, host.random, host.decode, host.encode, host.file].map(quietly);
  const refuse = () => {
    throw new Error('not available');
  };

  // Globals that Emscripten and Pyodide expect of a plain JavaScript shell.
  const shell = {
    console: { log() {}, warn() {}, error() {} },
    performance: { now: () => now() },
    crypto: { getRandomValues: (view) => (view.set(new Bytes(random(view.byteLength))), view) },
    os: { system: (_, [, command]) => base64(random(Number(/^head -c(\d+) /.exec(command)[1]))) },
    read: refuse,
    load: refuse,
    noImport: refuse,
    readbuffer: (name) => new Bytes(file(Text(name))).buffer,
    setTimeout: (run) => (void Promise.resolve().then(() => run()), 0),
    clearTimeout() {},
    TextDecoder: class {
      #label;
      constructor(label = 'utf-8') {
        this.#label = Text(label);
      }
      decode(bytes = new Bytes()) {
        return decode(bytes, this.#label);
      }
    },
    TextEncoder: class {
      encode(text) {
        return new Bytes(encode(Text(text)));
      }
      encodeInto(text, view) {
        const bytes = this.encode(text).subarray(0, view.length);
        view.set(bytes);
        return { read: text.length, written: bytes.length };
      }
    },
  };
  Object.assign(globalThis, shell);

  function base64(bytes) {
    const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
    let text = '';
    for (let at = 0; at < bytes.length; at += 3) {
      const three = (bytes[at] << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
      text += digits[three >> 18] + digits[(three >> 12) & 63];
      text += (at + 1 < bytes.length ? digits[(three >> 6) & 63] : '=') + (at + 2 < bytes.length ? digits[three & 63] : '=');
    }
    return text;
  }

  // Refusing to grow is a MemoryError in Python.
  const { grow } = WebAssembly.Memory.prototype;
  WebAssembly.Memory.prototype.grow = function (pages) {
    if (this.buffer.byteLength + pages * 65_536 > limits.memoryBytes) throw new RangeError('memory limit');
    return grow.call(this, pages);
  };

  /** Output of one stream up to the limit; the rest is dropped. */
  class Output {
    #decoder = new shell.TextDecoder();
    #bytes = [];
    #dropped = 0;
    write = (bytes) => {
      // A character has at most four bytes.
      const room = limits.outputCharacters * 4 - this.#bytes.length;
      for (let at = 0; at < Math.min(room, bytes.length); at += 1) this.#bytes.push(bytes[at]);
      this.#dropped += Math.max(0, bytes.length - room);
      return bytes.length;
    };
    take() {
      const text = this.#decoder.decode(Uint8Array.from(this.#bytes));
      const isCut = this.#dropped > 0 || text.length > limits.outputCharacters;
      [this.#bytes, this.#dropped] = [[], 0];
      return isCut ? `${text.slice(0, limits.outputCharacters)}\n[output cut after ${limits.outputCharacters} characters]\n` : text;
    }
  }
  const [stdout, stderr] = [new Output(), new Output()];

  /** Files are in memory that no other limit counts, so all bytes that an episode writes are counted. */
  function limitFiles(FS) {
    const NO_SPACE = 51;
    let left = limits.fileBytes;
    const spend = (bytes) => {
      left -= bytes;
      if (left < 0) throw new FS.ErrnoError(NO_SPACE);
    };
    const { write, truncate, ftruncate } = FS;
    FS.write = (stream, buffer, offset, length, ...rest) => {
      if (!FS.isChrdev(stream.node.mode)) spend(length);
      return write.call(FS, stream, buffer, offset, length, ...rest);
    };
    FS.truncate = (path, length) => (spend(length), truncate.call(FS, path, length));
    FS.ftruncate = (fd, length) => (spend(length), ftruncate.call(FS, fd, length));
  }

  let python = null;
  let run = null;
  return {
    /** `image`: the memory of a started interpreter, for a fast start; null: start from nothing. */
    async start(prelude, lockFile, image) {
      const start = image === null ? { _makeSnapshot: true } : { _loadSnapshot: new Bytes(image.buffer) };
      python = await globalThis.loadPyodide({
        ...start,
        createPyodideModule: globalThis.createPyodideModule,
        indexURL: '/',
        packageBaseUrl: '/',
        lockFileContents: lockFile,
        jsglobals: Object.create(null),
        env: { HOME: '/home/user', PYTHONINSPECT: '' },
      });
      // Pyodide would keep these 30 MB.
      python._api.config._loadSnapshot = undefined;
      // Modules of every program are part of the image.
      if (image === null) python.runPython('import ast, builtins, json, linecache, traceback; compile("", "", "exec")');
      const made = image === null ? python.makeMemorySnapshot() : null;
      python.setStdout({ write: stdout.write, isatty: false });
      python.setStderr({ write: stderr.write, isatty: false });
      limitFiles(python.FS);
      run = python.runPython(prelude);
      return made;
    },
    /** Returns JSON text of `{"exitCode","parses","stdout","stderr"}`. Throws if the interpreter is unusable. */
    run(code) {
      const [exitCode, parses] = JSON.parse(run(code));
      return JSON.stringify({ exitCode, parses, stdout: stdout.take(), stderr: stderr.take() });
    },
  };
}
