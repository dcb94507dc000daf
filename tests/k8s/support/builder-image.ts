import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { TestEngine } from '../../integration/hosting/docker-engine.world.ts';

/** The programs that the pod of a build uses, beside BuildKit. */
const PROGRAMS = ['sh', 'head', 'tar', 'test', 'sed', 'cat', 'sleep', 'sha256sum', 'mkdir'];

/**
 * A stand-in for BuildKit, because its image is in a registry that tests do not reach: it reads the Dockerfile of the context, prints lines as
 * `buildctl build --progress=plain` does, and writes the digest of its arguments as metadata. Instructions: `RUN hash FILE`, `RUN fail`,
 * `RUN wait`, `RUN refuse` (the push) and `RUN kill`.
 */
const BUILDCTL = `#!/bin/sh
arguments="$*"
while [ $# -gt 0 ]; do
  case "$1" in --metadata-file) metadata=$2 ;; esac
  shift
done
say() { echo "$1" >&2; }
say '#1 [internal] load build definition from .palestra.Dockerfile'
say '#1 DONE 0.0s'
say '#2 importing cache manifest from a registry'
say '#2 ERROR: a registry: not found'
say "#3 [1/2] FROM base"
say "#3 0.01 arguments $arguments"
say "#3 0.02 credentials $(cat "$DOCKER_CONFIG/config.json" 2>/dev/null)"
while read -r instruction word file; do
  [ "$instruction" = RUN ] || continue
  say "#4 [2/2] RUN $word"
  case "$word" in
    hash) say "#4 0.10 $(sha256sum "/context/$file")" ;;
    wait) say '#4 0.10 waiting'; sleep 600 ;;
    kill) kill -9 $$ ;;
    refuse)
      say '#5 exporting to image'
      say '#5 ERROR: failed to push registry.example/acme: unexpected status: 401 Unauthorized'
      say 'error: failed to solve: failed to push registry.example/acme: unexpected status: 401 Unauthorized'
      exit 1 ;;
    fail)
      say '#4 0.10 fatal: nothing works'
      say '#4 0.20 the end'
      say '#4 ERROR: process "fail" did not complete successfully: exit code: 1'
      say 'error: failed to solve: process "fail" did not complete successfully: exit code: 1'
      exit 1 ;;
  esac
done < /context/.palestra.Dockerfile
say '#4 DONE 0.3s'
digest=$(echo "$arguments" | sha256sum)
printf '{\n  "containerimage.digest": "sha256:%s"\n}\n' "\${digest%% *}" > "$metadata"
`;

/** Its name. */
export function makeBuilderImage(engine: TestEngine): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'palestra-builder-'));
  const image = `localhost/palestra-test/builder:${process.pid}`;
  const links = PROGRAMS.map((name) => `RUN ["/usr/bin/busybox", "ln", "-s", "busybox", "/usr/bin/${name}"]`);
  try {
    copyFileSync('/bin/busybox', path.join(folder, 'busybox'));
    writeFileSync(path.join(folder, 'buildctl'), BUILDCTL, { mode: 0o755 });
    const lines = ['RUN ["/usr/bin/busybox", "mkdir", "/bin"]', 'RUN ["/usr/bin/busybox", "ln", "-s", "/usr/bin/busybox", "/bin/sh"]'];
    const dockerfile = [
      `FROM ${engine.image}`,
      'COPY busybox /usr/bin/busybox',
      'COPY buildctl /usr/bin/buildctl-daemonless.sh',
      ...links,
      ...lines,
      '',
    ].join('\n');
    writeFileSync(path.join(folder, 'Dockerfile'), dockerfile);
    engine.ask('build', '-q', '--layers=false', '--label', `palestra.dev/installation=${engine.installation}`, '-t', image, folder);
    return image;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
