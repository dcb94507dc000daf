import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** Programs that every usual image has. */
const COMMANDS =
  'base64 cat chmod chown cp dd dirname env false head id ln ls mkdir mkfifo mv nohup readlink rm sha256sum sleep stat tail tar timeout touch true uname wc whoami';

/** Builds an image with bash, the usual commands and this Node.js from local files. Returns its name. */
export function makeShellImage(engine: string, name = `localhost/palestra-test/shell:${process.pid}`): string {
  const root = mkdtempSync(path.join(tmpdir(), 'palestra-test-image-'));
  try {
    for (const folder of ['tmp', 'proc', 'sys', 'dev', 'etc', 'root', 'usr/bin']) mkdirSync(path.join(root, folder), { recursive: true });
    symlinkSync('usr/bin', path.join(root, 'bin'));
    chmodSync(path.join(root, 'tmp'), 0o1777);
    writeFileSync(path.join(root, 'etc/passwd'), 'root:x:0:0:root:/root:/bin/bash\nuser:x:1000:1000:user:/tmp:/bin/bash\n');
    writeFileSync(path.join(root, 'etc/group'), 'root:x:0:\nuser:x:1000:\n');
    const programs = [...['sh', 'bash', ...COMMANDS.split(' ')].map((command) => which(command)), process.execPath];
    for (const program of programs) cpSync(realpathSync(program), path.join(root, 'usr/bin', path.basename(program)));
    for (const file of new Set(programs.flatMap(librariesOf))) cpSync(realpathSync(file), path.join(root, file));
    const archive = execFileSync('tar', ['-C', root, '-cf', '-', '.'], { maxBuffer: 2 ** 30 });
    execFileSync(engine, ['import', '--quiet', '--change', 'ENV PATH=/usr/bin', '-', name], { input: archive });
    return name;
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

const which = (command: string): string =>
  execFileSync('/bin/sh', ['-c', `command -v ${command}`, 'sh'], { encoding: 'utf8', env: { PATH: '/usr/bin:/bin' } })
    .trim()
    .replace(/^(?!\/)/, '/usr/bin/');

const librariesOf = (program: string): string[] =>
  execFileSync('/usr/bin/ldd', [program], { encoding: 'utf8' }).match(/\/[^ :]+\.so[^ :]*/g) ?? [];
