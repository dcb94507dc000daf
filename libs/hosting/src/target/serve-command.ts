import { createRequire } from 'node:module';
import type { LibrarySpec } from './python-library.ts';
import type { PythonServer } from './target.ts';

export interface ServeOptions {
  host: string;
  /** A text, such as `{port}`, is replaced later. */
  port: number | string;
  /** The server ends when its standard input ends, and with it when its parent is killed. Without it the server ends by a signal only. */
  endsWithInput: boolean;
}

/** A program that serves environments and prints the line `{"ready":true,...}` when it listens. */
export interface ServeCommand {
  command: string;
  args: string[];
  env: Record<string, string>;
}

/** The program `serve-kit.js` of this package. */
export const kitServerFile = (): string => createRequire(import.meta.url).resolve('@palestra/hosting/serve-kit');

/** A server of uvicorn that prints a line when it listens. */
const LISTENING = `
import json, os, runpy, sys, threading, uvicorn
class Listening(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets=sockets)
        if self.started:
            print(json.dumps({"ready": True}), flush=True)
def end_with_parent():
    # Not by sys.stdin: a thread that waits in it makes the end of the interpreter a fatal error.
    while os.read(0, 65536):
        pass
    os._exit(0)
target, host, port, lifetime = sys.argv[1:5]
if lifetime == "input":
    threading.Thread(target=end_with_parent, daemon=True).start()
`;

/** Runs the application that uvicorn names. `sys.path` begins with the working directory, as with `python -m uvicorn`. */
const UVICORN = `${LISTENING}
for package in sys.argv[5:]:
    from importlib import util
    spec = util.spec_from_file_location(package, os.path.abspath("__init__.py"), submodule_search_locations=[os.getcwd()])
    sys.modules[package] = util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[package])
Listening(uvicorn.Config(target, host=host, port=int(port), log_level="warning")).run()
`;

/** Runs a server of the package `openreward` or `ors`, which starts uvicorn with an address of its choice, on our address. */
const ORS_SERVER = `${LISTENING}
def run(app, **options):
    Listening(uvicorn.Config(app, **{**options, "host": host, "port": int(port), "log_level": "warning"})).run()
uvicorn.run = run
sys.argv = [target]
sys.path.insert(0, os.path.dirname(os.path.abspath(target)))
runpy.run_path(target, run_name="__main__")
`;

const PYTHON_VARIABLES = { PYTHONUNBUFFERED: '1', PYTHONDONTWRITEBYTECODE: '1' };

const END_WITH_INPUT = '--end-with-input';
const lifetimeOf = ({ endsWithInput }: ServeOptions): string => (endsWithInput ? 'input' : 'signal');

/** Serves the environments of a module of the kit. `program`: another path of `kitServerFile`, for example in an image. */
export const kitCommand = (file: string, options: ServeOptions, node = process.execPath, program = kitServerFile()): ServeCommand => ({
  command: node,
  args: [program, file, options.host, String(options.port), ...(options.endsWithInput ? [END_WITH_INPUT] : [])],
  env: {},
});

/** Runs in `server.cwd`, with a Python that has uvicorn. */
export const openenvCommand = (server: PythonServer, options: ServeOptions, python: string): ServeCommand => ({
  command: python,
  args: [
    '-c',
    UVICORN,
    server.app,
    options.host,
    String(options.port),
    lifetimeOf(options),
    ...(server.package === undefined ? [] : [server.package]),
  ],
  env: PYTHON_VARIABLES,
});

/** `file`: a program that runs the `Server` of the package `openreward` or `ors`. */
export const orsCommand = (file: string, options: ServeOptions, python: string): ServeCommand => ({
  command: python,
  args: ['-c', ORS_SERVER, file, options.host, String(options.port), lifetimeOf(options)],
  env: PYTHON_VARIABLES,
});

/** Runs with a Python that has the package `palestra` and the library. */
export const libraryCommand = (library: LibrarySpec, options: ServeOptions, python: string): ServeCommand => ({
  command: python,
  args: [
    '-m',
    'palestra.serve',
    library.spec,
    ...library.args,
    '--host',
    options.host,
    '--port',
    String(options.port),
    ...(options.endsWithInput ? [END_WITH_INPUT] : []),
  ],
  env: PYTHON_VARIABLES,
});
