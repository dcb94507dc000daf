export { type Isolation, isolation, requireSandbox } from './process/isolation.ts';
export { type ConsoleResult, PythonConsole } from './python/console.ts';
export { LIMITS, type ProgramResult } from './python/interpreter.ts';
export { PROGRAM_LIMITS, type ProgramLimits } from './python/program-guard.ts';
export { pythonTool, type PythonToolOptions } from './python-tool.ts';
export { runPython, type RunPythonOptions, type RunPythonResult } from './run-python.ts';
