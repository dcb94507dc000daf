import { HostingError } from '../provider/hosting-error.ts';
import type { ExecRequest, ExecResult, SandboxFile } from './sandbox.port.ts';

/** Commands on files. They run in the sandbox, so that a link in it never leads out of it. `run`: runs one there. */

type Run = (request: ExecRequest) => Promise<ExecResult>;

const TIMEOUT_MS = 120_000;
const SMALL_BYTES = 1_024;
const MISSING_STATUS = 44;

const STAT = `
if [ -L "$1" ]; then echo symlink
elif [ -f "$1" ]; then stat -c %s -- "$1" 2>/dev/null || wc -c < "$1"
elif [ -e "$1" ]; then echo other
else exit ${MISSING_STATUS}
fi`;

/** Null if there is no such file. */
export async function statFile(run: Run, path: string): Promise<SandboxFile | null> {
  const { exitCode, output } = await run({ ...shell(STAT, path), maxBytes: SMALL_BYTES });
  if (exitCode === MISSING_STATUS) return null;
  if (exitCode !== 0) throw new HostingError('instance_failed', `The size of ${path} cannot be read in the sandbox.`);
  const text = output.toString().trim();
  if (text === 'symlink' || text === 'other') return { kind: text };
  const size = Number(text);
  if (text === '' || !Number.isSafeInteger(size)) throw new Error(`not the size of a file: ${text.slice(0, 100)}`);
  return { kind: 'file', size };
}

export async function readFile(run: Run, path: string, { offset, length }: { offset: number; length: number }): Promise<Buffer> {
  const request = shell('tail -c +"$2" -- "$1" | head -c "$3"', path, String(offset + 1), String(length));
  const { exitCode, output } = await run({ ...request, maxBytes: length });
  if (exitCode !== 0) throw new HostingError('instance_failed', `${path} cannot be read in the sandbox.`);
  return output;
}

/** Its folder is created. */
export async function writeFile(run: Run, path: string, content: Buffer): Promise<void> {
  const request = shell('mkdir -p -- "$(dirname -- "$1")" && cat > "$1"', path);
  const { exitCode, output } = await run({ ...request, stdin: content, maxBytes: SMALL_BYTES, stdoutOnly: false });
  if (exitCode === 0) return;
  throw new HostingError('instance_failed', `${path} cannot be written in the sandbox: ${output.toString().trim()}`);
}

const shell = (script: string, ...args: string[]) => ({
  command: ['/bin/sh', '-c', script, 'sh', ...args],
  timeoutMs: TIMEOUT_MS,
  stdoutOnly: true,
});
