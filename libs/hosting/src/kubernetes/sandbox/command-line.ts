import type { ExecRequest } from '../../sandbox/sandbox.port.ts';

/**
 * The command of an exec. What it runs comes as the first line of the standard input, because the address of an exec is logged by the cluster,
 * and what lies between may allow no long ones. The container has no other way to tell that a command has begun, or has ended although a process
 * of it still holds its output: so this shell says both on its standard error, which the command does not get.
 */
export const SHELL: readonly string[] = [
  '/bin/sh',
  '-c',
  `echo "pid $$" >&2
_palestra_n='
'
IFS= read -r _palestra_c
eval "$_palestra_c"
_palestra_s=$?
echo "exit $_palestra_s" >&2
exit "$_palestra_s"`,
];

/** Input of a command comes in pieces, each after a line with its length; 0 ends it. */
const INPUT =
  'while IFS= read -r _palestra_k && [ "$_palestra_k" != 0 ]; do dd bs="$_palestra_k" count=1 iflag=fullblock 2>/dev/null || break; done';
const MOST_PIECE_BYTES = 2 ** 20;

/** A word of the shell, in one line. */
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`).replaceAll('\n', `'"$_palestra_n"'`)}'`;

/** What `SHELL` runs. `hasInput`: `inputLines` follow. */
export function commandLine({ command, folder, variables = {}, stdoutOnly }: ExecRequest, hasInput: boolean): Buffer {
  const steps = [
    ...(folder === undefined ? [] : [`cd ${quoted(folder)}`]),
    ...Object.entries(variables).map(([name, value]) => `export ${quoted(`${name}=${value}`)}`),
    `exec ${command.map(quoted).join(' ')}`,
  ];
  const program = `(${steps.join(' && ')}) ${stdoutOnly ? '2>/dev/null' : '2>&1'}`;
  return Buffer.from(`${hasInput ? `${INPUT} | ${program}` : `${program} </dev/null`}\n`);
}

/** The input of a command, as `SHELL` reads it. */
export async function* inputLines(input: Buffer | AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const piece = (bytes: Buffer) => Buffer.concat([Buffer.from(`${bytes.length}\n`), bytes]);
  let held: Buffer[] = [];
  let size = 0;
  for await (const chunk of Buffer.isBuffer(input) ? [input] : input) {
    for (let at = 0; at < chunk.length; at += MOST_PIECE_BYTES) {
      const bytes = chunk.subarray(at, at + MOST_PIECE_BYTES);
      held.push(bytes);
      size += bytes.length;
      if (size < MOST_PIECE_BYTES) continue;
      yield piece(Buffer.concat(held));
      [held, size] = [[], 0];
    }
  }
  if (size > 0) yield piece(Buffer.concat(held));
  yield Buffer.from('0\n');
}
