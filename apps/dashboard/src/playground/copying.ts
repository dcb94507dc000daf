import type { SessionCallView, SessionView } from '@palestra/protocol';

/** Calls as others can use them: lines of a log, a command, a program. Arguments keep the spelling of their numbers. */

/** Where a copied call is to go. The key is a variable of the reader's shell: none is ever copied. */
export interface Origin {
  url: string;
  session: Pick<SessionView, 'sid' | 'environment' | 'task'>;
}

/** One line of JSONL; `n` counts the calls of the session from 1. */
export function jsonlOf(call: SessionCallView, n: number): string {
  const head = { n, task_id: call.task_id, started_at: call.started_at, latency_ms: call.latency_ms, tool: call.tool };
  const { state, ok, failure_class, reason, code, text, blocks, reward, finished } = call;
  const result = { result: blocks ?? text, reward, finished, state, ok, failure_class, reason: reason ?? code };
  return `${JSON.stringify(head).slice(0, -1)},"arguments":${isJson(call.input) ? oneLine(call.input) : JSON.stringify(call.input)},${JSON.stringify(result).slice(1)}`;
}

/** Line breaks outside of strings are all that JSON has of them. */
const oneLine = (json: string): string => json.replaceAll(/[\r\n]\s*/g, ' ');

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** The call as a POSIX shell makes it, in the same session. */
export function curlOf({ url, session: { sid } }: Origin, call: SessionCallView): string {
  return [
    `curl --no-buffer ${quoted(`${url}/call`)}`,
    '-H "X-API-Key: $OPENREWARD_API_KEY"',
    `-H ${quoted(`X-Session-ID: ${sid}`)}`,
    `-H 'Content-Type: application/json'`,
    `--data-raw ${quoted(`{"name":${JSON.stringify(call.tool)},"input":${call.input}}`)}`,
  ].join(' \\\n  ');
}

/** The call as the openreward package makes it, in a session of its own on the same task. */
export function pythonOf({ session: { environment, task } }: Origin, call: SessionCallView): string {
  const place = task?.['kind'] === 'index' ? `split=${JSON.stringify(task['split'])}, index=${String(task['index'])}` : 'task=task';
  return [
    'from openreward import OpenReward',
    '',
    `environment = OpenReward().environments.get(${JSON.stringify(environment ?? '')})`,
    ...(place === 'task=task'
      ? ['task = environment.list_tasks(split="train")[0]  # the task of this session has no index: choose one']
      : []),
    `with environment.session(${place}) as session:`,
    `    output = session.call_tool(${JSON.stringify(call.tool)}, ${pythonLiteral(call.input)})`,
    '    print(output.blocks, output.reward, output.finished)',
  ].join('\n');
}

const PYTHON: Record<string, string> = { true: 'True', false: 'False', null: 'None' };
/** JSON text as Python writes it: words differ, strings and numbers do not. */
export const pythonLiteral = (json: string): string =>
  oneLine(json).replaceAll(/"(?:[^"\\]|\\.)*"|\b(?:true|false|null)\b/g, (token) => PYTHON[token] ?? JSON.stringify(JSON.parse(token)));
