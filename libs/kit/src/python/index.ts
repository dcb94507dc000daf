export { checkPythonJson, jsonErrorOf, PythonJsonError } from './json.ts';
export { isFalsy, NOT_JSON, pythonFloat, pythonInt, pythonRepr, pythonStr, pythonStrip, pythonType } from './values.ts';
