import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { TestEngine } from '../../integration/hosting/docker-engine.world.ts';

/** A folder with BuildKit, RootlessKit and a registry, which `.ci/machine.sh` builds. Under CI there must be one. */
export const buildkitPrograms = process.env['PALESTRA_TEST_BUILDKIT'];
if (buildkitPrograms === undefined && process.env['CI']) {
  throw new Error('PALESTRA_TEST_BUILDKIT must name the programs of tests/k8s/buildkit (see .ci/run); it is not set');
}

const FILES = {
  'root/etc/passwd': 'root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\n',
  'root/etc/group': 'root:x:0:\nuser:x:1000:\n',
  'root/etc/subuid': 'user:100000:65536\n',
  'root/etc/subgid': 'user:100000:65536\n',
};
const FOLDERS = ['root/bin', 'root/usr/bin', 'home/user/.local/tmp', 'home/user/.local/share/buildkit', 'run/user/1000'];

const DOCKERFILE = (base: string) => `FROM ${base}
COPY root/ /
COPY --chown=1000:1000 home/ /home/
COPY --chown=1000:1000 run/ /run/
USER 1000:1000
ENV HOME=/home/user USER=user XDG_RUNTIME_DIR=/run/user/1000 TMPDIR=/home/user/.local/tmp
`;

/**
 * BuildKit's image for rootless mode, with the same programs, folders and user as the stage `rootless` of its Dockerfile, but from files of this
 * machine, because tests reach no registry of images. `registry` is spoken to without TLS. Returns the name of the image.
 */
export function makeBuilderImage(engine: TestEngine, registry: string): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'palestra-buildkit-'));
  const image = `localhost/palestra-test/buildkit:${process.pid}`;
  const at = (...names: string[]) => path.join(folder, ...names);
  const program = (file: string, name = path.basename(file)) => cpSync(realpathSync(file), at('root/usr/bin', name));
  try {
    for (const name of FOLDERS) mkdirSync(at(name), { recursive: true });
    mkdirSync(at('root/etc'));
    for (const [name, text] of Object.entries(FILES)) writeFileSync(at(name), text);
    mkdirSync(at('home/user/.config/buildkit'), { recursive: true });
    writeFileSync(at('home/user/.config/buildkit/buildkitd.toml'), `[registry."${registry}"]\n  http = true\n`);
    for (const name of readdirSync(buildkitPrograms!)) if (name !== 'registry') program(path.join(buildkitPrograms!, name));

    const linked = ['runc', 'newuidmap', 'newgidmap'].map((name) => [name, which(name)] as const);
    for (const [name, file] of linked) program(file, name);
    for (const library of new Set(linked.flatMap(([, file]) => librariesOf(file)))) cpSync(realpathSync(library), at('root', library));
    // Debian's programs with the bit setuid need CAP_SYS_ADMIN too, which no container has.
    for (const [name, capability] of [
      ['newuidmap', 'cap_setuid'],
      ['newgidmap', 'cap_setgid'],
    ] as const) {
      chmodSync(at('root/usr/bin', name), 0o755);
      execFileSync('setcap', [`${capability}+ep`, at('root/usr/bin', name)]);
    }
    program('/bin/busybox');
    for (const name of execFileSync('/bin/busybox', ['--list'], { encoding: 'utf8' }).split('\n').filter(Boolean)) {
      if (name !== 'busybox') symlinkSync('/usr/bin/busybox', at('root/usr/bin', name));
    }
    symlinkSync('/usr/bin/busybox', at('root/bin/sh'));
    writeFileSync(at('Dockerfile'), DOCKERFILE(engine.image));
    engine.ask('build', '-q', '--layers=false', '--label', `palestra.dev/installation=${engine.installation}`, '-t', image, folder);
    return image;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const which = (name: string): string => execFileSync('which', [name], { encoding: 'utf8' }).trim();

const librariesOf = (file: string): string[] =>
  [...execFileSync('ldd', [file], { encoding: 'utf8' }).matchAll(/=> (\/\S+)/g)].map(([, library]) => library!);
