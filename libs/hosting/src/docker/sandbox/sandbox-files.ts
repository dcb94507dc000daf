import type { ExecRequest, SandboxFile } from '../../sandbox/sandbox.port.ts';

/** Commands on files. They run in the sandbox, so that a link in it never leads out of it. */

const TIMEOUT_MS = 120_000;
const SMALL_BYTES = 1_024;

const STAT = `
if [ -L "$1" ]; then echo symlink
elif [ -f "$1" ]; then stat -c %s -- "$1" 2>/dev/null || wc -c < "$1"
elif [ -e "$1" ]; then echo other
else exit 44
fi`;
export const MISSING_STATUS = 44;

export const statCommand = (path: string): ExecRequest => ({ ...shell(STAT, path), maxBytes: SMALL_BYTES });

export function readStat(output: Buffer): SandboxFile {
  const text = output.toString().trim();
  if (text === 'symlink' || text === 'other') return { kind: text };
  const size = Number(text);
  if (text === '' || !Number.isSafeInteger(size)) throw new Error(`not the size of a file: ${text.slice(0, 100)}`);
  return { kind: 'file', size };
}

export const readCommand = (path: string, offset: number, length: number): ExecRequest => ({
  ...shell('tail -c +"$2" -- "$1" | head -c "$3"', path, String(offset + 1), String(length)),
  maxBytes: length,
});

export const writeCommand = (path: string, content: Buffer): ExecRequest => ({
  ...shell('mkdir -p -- "$(dirname -- "$1")" && cat > "$1"', path),
  stdin: content,
  maxBytes: SMALL_BYTES,
  stdoutOnly: false,
});

const shell = (script: string, ...args: string[]) => ({
  command: ['/bin/sh', '-c', script, 'sh', ...args],
  timeoutMs: TIMEOUT_MS,
  stdoutOnly: true,
});
