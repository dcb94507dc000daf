import type { SessionCallView, SessionView } from '@palestra/protocol';
import { isJson } from '../format/json.ts';

/** Renders a call as a log line, a shell command or a program. Numbers in arguments keep their spelling. */

/** Where a copied call is sent. The API key is a variable of the reader's shell and is never copied. */
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

/** JSON has line breaks only outside of strings. */
const oneLine = (json: string): string => json.replaceAll(/[\r\n]\s*/g, ' ');

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** The call as a POSIX shell command, in the same session. */
export function curlOf({ url, session: { sid } }: Origin, call: SessionCallView): string {
  return [
    `curl --no-buffer ${quoted(`${url}/call`)}`,
    '-H "X-API-Key: $OPENREWARD_API_KEY"',
    `-H ${quoted(`X-Session-ID: ${sid}`)}`,
    `-H 'Content-Type: application/json'`,
    `--data-raw ${quoted(`{"name":${JSON.stringify(call.tool)},"input":${call.input}}`)}`,
  ].join(' \\\n  ');
}

/** The call as a program for the openreward package, in a new session on the same task. */
export function pythonOf({ session: { environment, task } }: Origin, call: SessionCallView): string {
  const taskArguments = task?.['kind'] === 'index' ? `split=${JSON.stringify(task['split'])}, index=${String(task['index'])}` : 'task=task';
  return [
    'from openreward import OpenReward',
    '',
    `environment = OpenReward().environments.get(${JSON.stringify(environment ?? '')})`,
    ...(taskArguments === 'task=task'
      ? ['task = environment.list_tasks(split="train")[0]  # the task of this session has no index: choose one']
      : []),
    `with environment.session(${taskArguments}) as session:`,
    `    output = session.call_tool(${JSON.stringify(call.tool)}, ${pythonLiteral(call.input)})`,
    '    print(output.blocks, output.reward, output.finished)',
  ].join('\n');
}

const PYTHON: Record<string, string> = { true: 'True', false: 'False', null: 'None' };
/** Converts JSON text to a Python literal: `true`, `false` and `null` differ. */
export const pythonLiteral = (json: string): string =>
  oneLine(json).replaceAll(/"(?:[^"\\]|\\.)*"|\b(?:true|false|null)\b/g, (token) => PYTHON[token] ?? JSON.stringify(JSON.parse(token)));
