/**
 * Python's side: an expression whose value is a function of a program's text that returns JSON `[exit code, whether it parses]`. Names
 * survive from one program of an episode to the next. Access to JavaScript is removed first, because no program needs it; the security
 * boundary is the process (process/).
 */
export const prelude = `
import ast, builtins, json, linecache, sys, traceback
def _begin():
    from _pyodide import _importhook
    for name in ("js", "pyodide_js"):
        _importhook.unregister_js_module(name)
    sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__module__ != "_pyodide._importhook"]
    hidden = ("js", "pyodide_js", "pyodide", "_pyodide", "_pyodide_core", "pyodide_parser", "micropip", "ctypes", "_ctypes")
    for name in [*sys.modules]:
        if name.partition(".")[0] in hidden:
            del sys.modules[name]
    for name in hidden:
        sys.modules[name] = None
    parse, compile_, exec_, dumps = ast.parse, compile, exec, json.dumps
    names = {"__name__": "__main__", "__builtins__": builtins}
    filename = "<action>"

    def report(error):
        lines = traceback.format_exception(type(error), error, error.__traceback__.tb_next)
        tell("".join(lines))

    def tell(text):
        try:
            sys.stderr.write(text)
        except BaseException:
            pass  # The program took its own stderr away.

    def flush():
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except BaseException:
                pass

    def run(code):
        try:
            parse(code)
            parses = True
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            parses = False
        linecache.cache[filename] = (len(code), None, code.splitlines(True), filename)
        status = 0
        try:
            exec_(compile_(code, filename, "exec"), names)
        except SystemExit as end:
            if end.code is not None and not isinstance(end.code, int):
                tell(f"{end.code}\\n")
            status = 0 if end.code is None else end.code & 255 if isinstance(end.code, int) else 1
        except BaseException as error:
            report(error)
            status = 1
        flush()
        return dumps([status, parses])

    return run
globals().pop("_begin")()
`;
