import { type ExecRequest, type ExecResult, type SandboxProvider } from '@palestra/hosting';
import { PalestraError } from '@palestra/protocol';

/** The file routes of a sandbox (docs/sandboxes.md). Everything is a command in it, so that no link leads out of it. */

/** Most bytes of one request. */
export const CHUNK_BYTES = 4 * 2 ** 20;
const SMALL_BYTES = 4_096;
const CHUNK_MS = 110_000;
const DIGEST_MS = 880_000;

/** Statuses of the scripts. */
const MISSING = 44;
const LINK = 45;
const NOT_A_FILE = 46;
const WRONG_SIZE = 47;

const CHECK = `
[ -L "$1" ] && exit ${LINK}
[ -e "$1" ] || exit ${MISSING}
[ -f "$1" ] || exit ${NOT_A_FILE}
`;
const SIZE = 'size() { stat -c %s -- "$1" 2>/dev/null || wc -c < "$1"; }\n';
const PART = 'd=${1%/*}; p="$d/.${1##*/}.part"\n';
const STAT = `${SIZE}${CHECK}size "$1"`;
const STAT_DIGEST = `${STAT} && sha256sum < "$1"`;
const READ = `${CHECK}tail -c +"$2" -- "$1" | head -c "$3"`;
const WRITE = `${SIZE}${PART}
[ "$3" = 1 ] && { mkdir -p -- "$d/" || exit 1; }
[ -d "$d/" ] || exit ${MISSING}
[ -L "$p" ] && exit ${LINK}
if [ "$2" = 0 ]; then cat > "$p"
else
  [ -f "$p" ] && [ "$(size "$p")" -ge "$2" ] || exit ${WRONG_SIZE}
  dd if=/dev/null of="$p" bs=1 seek="$2" 2>/dev/null && cat >> "$p"
fi && size "$p"`;
const COMMIT = `${SIZE}${PART}
[ -f "$p" ] && [ "$(size "$p")" = "$2" ] || exit ${WRONG_SIZE}
[ -d "$1" ] && exit ${NOT_A_FILE}
sha256sum < "$p" && mv -f -- "$p" "$1"`;

export class SandboxFiles {
  constructor(
    readonly sandboxes: SandboxProvider,
    readonly id: string,
  ) {}

  async stat(path: string, withDigest: boolean, signal: AbortSignal): Promise<{ size: number; sha256?: string }> {
    const lines = (await this.#run(withDigest ? STAT_DIGEST : STAT, [path], { timeoutMs: withDigest ? DIGEST_MS : CHUNK_MS }, signal))
      .toString()
      .split('\n');
    const size = readSize(lines[0]);
    return withDigest ? { size, sha256: readDigest(lines[1]) } : { size };
  }

  /** Throws status 416 for an offset beyond the end. `size`: of the whole file. */
  async read(path: string, offset: number, length: number, signal: AbortSignal): Promise<{ bytes: Buffer; size: number }> {
    const { size } = await this.stat(path, false, signal);
    if (offset > size || (offset === size && size > 0))
      throw refusal(416, `offset ${offset} is beyond the end of ${path}, which has ${size} bytes`);
    const bytes = await this.#run(READ, [path, String(offset + 1), String(length)], { maxBytes: length }, signal);
    return { bytes, size };
  }

  /** Writes a piece of a file that is not visible before `commit`. Returns the size of what was written so far. */
  async write(
    path: string,
    piece: { offset: number; makeFolders: boolean; bytes: Buffer },
    signal: AbortSignal,
  ): Promise<{ size: number }> {
    const { offset, makeFolders, bytes } = piece;
    const output = await this.#run(WRITE, [path, String(offset), makeFolders ? '1' : '0'], { stdin: bytes }, signal);
    return { size: readSize(output.toString()) };
  }

  /** Throws status 409 when the pieces have another size. */
  async commit(path: string, size: number, signal: AbortSignal): Promise<{ size: number; sha256: string }> {
    const output = await this.#run(COMMIT, [path, String(size)], { timeoutMs: DIGEST_MS }, signal);
    return { size, sha256: readDigest(output.toString()) };
  }

  async #run(script: string, args: string[], given: Partial<ExecRequest>, signal: AbortSignal): Promise<Buffer> {
    const [path] = args as [string];
    const command = ['/bin/sh', '-c', script, 'sh', ...args];
    const result = await this.sandboxes.exec(
      this.id,
      { command, timeoutMs: CHUNK_MS, maxBytes: SMALL_BYTES, stdoutOnly: true, ...given },
      signal,
    );
    if (result.timedOut) throw new PalestraError('backend_timeout', { detail: `${path} took too long.` });
    if (result.exitCode !== 0) throw fileError(path, result);
    return result.output;
  }
}

function fileError(path: string, { exitCode }: ExecResult): PalestraError {
  if (exitCode === MISSING) return refusal(404, `no such file: ${path}`);
  if (exitCode === LINK) return refusal(400, `refusing symlink: ${path}`);
  if (exitCode === NOT_A_FILE) return refusal(400, `not a regular file: ${path}`);
  if (exitCode === WRONG_SIZE) return refusal(409, `the pieces of ${path} do not have this size; write them again from the beginning`);
  return refusal(400, `${path} cannot be accessed (status ${exitCode}); the sandbox runs as the user of its image`);
}

const refusal = (status: number, detail: string) => new PalestraError('invalid_request', { status, detail });

/** What the commands of a sandbox write is not to be trusted. */
function readSize(text: string | undefined): number {
  const size = Number(text?.trim() || Number.NaN);
  if (!Number.isSafeInteger(size) || size < 0) throw refusal(400, 'the sandbox cannot tell the size of the file');
  return size;
}

function readDigest(text: string | undefined): string {
  const digest = /^[0-9a-f]{64}/.exec(text ?? '')?.[0];
  if (digest === undefined) throw refusal(400, 'the sandbox has no program sha256sum, with which files are checked');
  return digest;
}
