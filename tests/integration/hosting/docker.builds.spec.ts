import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import type { Artifact, BuildRequest, DockerProvider, LogLine } from '@palestra/hosting';
import { newUuid } from '@palestra/kit';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { engineCommand, TestEngine } from './docker-engine.world.ts';
import { call, folderWith, LIMITS, removeAll, SERVER, soon, specOf, startInstance } from './docker-instances.world.ts';

describe.skipIf(engineCommand === undefined)('images', () => {
  let engine: TestEngine;
  let provider: DockerProvider;

  beforeAll(async () => {
    engine = await TestEngine.start();
    provider = engine.provider();
  });
  afterAll(() => engine?.close());
  afterEach(() => removeAll(engine, provider));

  interface Built {
    artifact: Artifact & { kind: 'image' };
    lines: LogLine[];
  }

  async function build(given: Partial<BuildRequest> & Pick<BuildRequest, 'source'>, signal = soon()): Promise<Built> {
    const lines: LogLine[] = [];
    const request = { deployId: newUuid(), sourceDigest: `sha256:${newUuid()}`, buildArguments: {}, limits: LIMITS, ...given };
    const artifact = await provider.build(request, (line) => lines.push(line), signal);
    return { artifact: artifact as Built['artifact'], lines };
  }

  /** The image of a Dockerfile on the base image, beside other files. */
  const dockerfile = (lines: string[], files: Record<string, string> = {}, port: number | null = 8_000): BuildRequest['source'] => ({
    kind: 'folder',
    folder: folderWith(engine, { Dockerfile: [`FROM ${engine.image}`, ...lines].join('\n'), ...files }),
    plan: { kind: 'dockerfile', dockerfile: 'Dockerfile', port, variables: {} },
  });
  const run = (script: string) => `RUN ["node", "-e", ${JSON.stringify(script)}]`;
  const isRunning = (mark: string) =>
    readdirSync('/proc').some((pid) => /^\d+$/.test(pid) && pid !== String(process.pid) && commandOf(pid).includes(mark));
  const commandOf = (pid: string): string => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
    } catch {
      return '';
    }
  };

  test('a Dockerfile becomes a server, with what .dockerignore leaves, and is built once', async () => {
    const source = dockerfile(
      [
        'ARG WHO',
        'COPY . /app',
        'ENV WHO=$WHO',
        run("console.log(require('fs').readdirSync('/app').join())"),
        'EXPOSE 7000/tcp',
        'CMD ["node", "/app/server.mjs"]',
      ],
      {
        'server.mjs': SERVER,
        'secret.txt': 'no',
        'data/a.txt': 'no',
        'data/keep.txt': 'yes',
        '.dockerignore': '*.txt\ndata/*\n!data/keep.txt\n',
      },
      null,
    );
    Object.assign(source, { plan: { ...(source as { plan: object }).plan, variables: { QUOTED: 'a "b" $c' } } });
    const request = { source, sourceDigest: `sha256:${newUuid()}`, buildArguments: { WHO: 'me' } };
    const { artifact, lines } = await build(request);
    expect(artifact).toEqual({
      kind: 'image',
      digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
      image: artifact.digest,
      port: 7_000,
    });
    const texts = lines.map(({ text }) => text);
    expect(texts.find((text) => text.includes('server.mjs') && !text.includes('node'))).toBe(
      '.palestra.Dockerfile,Dockerfile,data,server.mjs',
    );
    expect(lines.every(({ at }, index) => index === 0 || at >= lines[index - 1]!.at)).toBe(true);

    const instance = await startInstance(provider, specOf(artifact));
    expect(await call(instance, 'env')).toMatchObject({ WHO: 'me', QUOTED: 'a "b" $c', PORT: '7000' });
    expect(await call(instance, 'read', { file: '/app/data/keep.txt' })).toBe('yes');

    const again = await build(request);
    expect(again.artifact).toEqual(artifact);
    expect(again.lines).toHaveLength(1);
    expect((await build({ ...request, buildArguments: { WHO: 'you' } })).artifact.digest).not.toBe(artifact.digest);
  });

  test('a failed build points at its line and step, and is not an image', async () => {
    const source = dockerfile([
      run("console.log('fine'); console.error('TypeError: of the author'); console.log('done'); process.exit(7)"),
    ]);
    const lines: LogLine[] = [];
    const failed = await provider
      .build(
        { deployId: newUuid(), sourceDigest: `sha256:${newUuid()}`, buildArguments: {}, limits: LIMITS, source },
        (line) => lines.push(line),
        soon(),
      )
      .catch((error: unknown) => error as { line: number });
    expect(failed).toMatchObject({
      code: 'build_failed',
      message: expect.stringMatching(/^The build failed in the step 2\/\d: RUN \["node".*exit status 7/s),
    });
    expect(lines[(failed as { line: number }).line - 1]?.text).toBe('TypeError: of the author');
    for (const [text, reason] of [
      ['FROM localhost/palestra-test/absent:1', /absent/],
      ['FORM x', /FROM|FORM/],
      ['', /FROM/],
    ] as const) {
      const odd = {
        kind: 'folder',
        folder: folderWith(engine, { Dockerfile: text }),
        plan: { kind: 'dockerfile', dockerfile: 'Dockerfile', port: 1, variables: {} },
      } as const;
      await expect(build({ source: odd }), text).rejects.toMatchObject({ code: 'build_failed', message: expect.stringMatching(reason) });
    }
  });

  test('a build that is cancelled, or takes too long, really stops', async () => {
    const mark = newUuid();
    const stop = new AbortController();
    const endless = () => dockerfile([run(`setInterval(() => {}, 1000, '${mark}')`)]);
    const cancelled = build({ source: endless() }, stop.signal).catch((error: unknown) => error);
    await expect.poll(() => isRunning(mark)).toBe(true);
    stop.abort();
    expect(await cancelled).toMatchObject({ code: 'build_cancelled' });
    await expect.poll(() => isRunning(mark)).toBe(false);

    const late = build({ source: endless(), limits: { ...LIMITS, seconds: 4 } }).catch((error: unknown) => error);
    expect(await late).toMatchObject({ code: 'build_timeout', message: expect.stringContaining('4 s') });
    await expect.poll(() => isRunning(mark)).toBe(false);
  });

  test('a build has limits: network, memory, size of the image', async () => {
    const offline = await build({
      source: dockerfile([run("require('net').connect(80, '203.0.113.1').on('error', (error) => console.log('offline', error.code))")]),
    });
    expect(offline.lines.map(({ text }) => text)).toContain('offline ENETUNREACH');
    const hungry = build({
      // Without a limit it would end well.
      source: dockerfile([run('const all = []; while (all.length < 64) all.push(Buffer.alloc(2 ** 24, 1))')]),
      limits: { ...LIMITS, memoryMb: 256 },
    });
    await expect(hungry).rejects.toMatchObject({
      code: 'build_failed',
      message: expect.stringMatching(/in the step 2\/\d: RUN .* ran out of memory: a build has 256 MB/),
    });
    // Of an image that is there already: during a build, what others write to the disk counts too.
    const known = { source: dockerfile([]), sourceDigest: `sha256:${newUuid()}` };
    await build(known);
    const large = build({ ...known, limits: { ...LIMITS, maxBytes: 2 ** 20 } });
    await expect(large).rejects.toMatchObject({ code: 'build_failed', message: expect.stringMatching(/has \d+ MB; at most 1 MB/) });
    await expect(build({ source: dockerfile(['RUN --network=host x']) })).rejects.toMatchObject({ code: 'source_invalid' });
  });

  test('a build that fills the disk is stopped, and leaves nothing', async () => {
    const before = new Set(engine.lines('images', '-aq', '--no-trunc'));
    const fill = `const fs = require('fs'), file = fs.openSync('/large', 'w'), block = Buffer.alloc(2 ** 20, 1); for (let i = 0; i < 2000; i += 1) fs.writeSync(file, block)`;
    const filling = build({
      source: dockerfile([run(`require('fs').writeFileSync('/small', '${newUuid()}')`), run(fill)]),
      limits: { ...LIMITS, maxBytes: 100 * 2 ** 20 },
    });
    await expect(filling).rejects.toMatchObject({ code: 'build_failed', message: expect.stringContaining('more than 100 MB of disk') });
    const historyOf = (id: string) => {
      try {
        return engine.ask('image', 'inspect', '-f', '{{.Parent}} {{json .History}}', id);
      } catch {
        // Another file of tests has removed its own.
        return '';
      }
    };
    const ours = (id: string) => !before.has(id) && historyOf(id).includes('/small');
    expect(engine.lines('images', '-aq', '--no-trunc').filter(ours)).toEqual([]);
  });

  test('the package "palestra" is installed from its own source', async () => {
    // A Python that shows what pip would get.
    const pip = `#!/usr/bin/node\nconst wanted = process.argv.slice(2).filter((one) => one.includes('palestra'));\nconsole.log('pip', ...wanted, require('fs').readdirSync('/opt/palestra-python').sort().join());`;
    const base = await build({
      source: dockerfile(['COPY python /usr/bin/python', run("require('fs').chmodSync('/usr/bin/python', 0o755)")], { python: pip }),
    });
    const source = {
      kind: 'folder',
      folder: folderWith(engine, { 'pyproject.toml': '' }),
      plan: {
        kind: 'python',
        install: [],
        packages: ['palestra[serve-verifiers]'],
        server: { command: 'python', args: [], cwd: '.', variables: {} },
      },
    } as const;
    const request = { deployId: newUuid(), sourceDigest: newUuid(), buildArguments: {}, limits: LIMITS, source };
    const texts: string[] = [];
    const onBase = (pythonPackage?: string) =>
      engine.provider({ baseImages: { python: base.artifact.image, node: engine.image }, ...(pythonPackage && { pythonPackage }) });
    await onBase().build(request, ({ text }) => texts.push(text), soon());
    expect(texts).toContain('pip /opt/palestra-python[serve-verifiers] LICENSE,README.md,pyproject.toml,src');
    const wheel = path.join(folderWith(engine, { 'palestra-1-py3-none-any.whl': '', 'secret.txt': 'no' }), 'palestra-1-py3-none-any.whl');
    await onBase(wheel).build(request, ({ text }) => texts.push(text), soon());
    expect(texts).toContain('pip /opt/palestra-python/palestra-1-py3-none-any.whl[serve-verifiers] palestra-1-py3-none-any.whl');
    // Another release of the service is another image of the same source, and the same release the same one.
    const installed = () => texts.filter((text) => text.endsWith(' palestra-1-py3-none-any.whl')).length;
    await onBase(wheel).build(request, ({ text }) => texts.push(text), soon());
    expect(installed()).toBe(1);
    writeFileSync(wheel, 'of another release');
    await onBase(wheel).build(request, ({ text }) => texts.push(text), soon());
    expect(installed()).toBe(2);
    await expect(onBase(`${wheel}.gone`).build(request, () => {}, soon())).rejects.toMatchObject({
      code: 'hosting_unsupported',
      message: expect.stringContaining('PALESTRA_PYTHON_PACKAGE'),
    });
  });

  test('a step reaches the Internet through a proxy, and nothing of this machine', async () => {
    const service = http.createServer((_, response) => response.end('inside')).listen(0, '0.0.0.0');
    await once(service, 'listening');
    const { port } = service.address() as AddressInfo;
    const limits = { ...LIMITS, network: true };
    // The address of this machine on the network of gateways, which the first build creates.
    await build({ source: dockerfile([]), limits });
    const host = engine.hostAddress();
    const script = `
      const proxy = new URL(process.env.HTTP_PROXY);
      const get = (url) => require('http').get({ host: proxy.hostname, port: proxy.port, path: url }, (answer) => console.log(url, answer.statusCode));
      get('http://${host}:${port}/'); get('http://169.254.169.254/');
      require('net').connect(${port}, '${host}').on('error', (error) => console.log('directly', error.code));
    `.replaceAll(/\s+/g, ' ');
    try {
      const request = { source: dockerfile([run(script)]), limits };
      const open = engine.provider({ reachable: [`${host}/32`] });
      const texts: string[] = [];
      const given = { ...request, deployId: newUuid(), sourceDigest: newUuid(), buildArguments: {} };
      await open.build(given, ({ text }) => texts.push(text), soon());
      expect(texts).toContain(`http://${host}:${port}/ 200`);
      expect(texts).toContain('http://169.254.169.254/ 403');
      expect(texts).toContain('directly ENETUNREACH');
    } finally {
      service.close();
    }
  });

  test('a base image whose ONBUILD would run as steps is refused', async () => {
    const image = `localhost/palestra-test/onbuild:${process.pid}`;
    const label = `palestra.dev/installation=${engine.installation}`;
    const onbuild = folderWith(engine, { Dockerfile: `FROM ${engine.image}\nONBUILD ADD http://10.88.0.1/x /x\n` });
    engine.ask('build', '-q', '--format', 'docker', '--label', label, '-t', image, onbuild);
    const source = dockerfile([]);
    writeFileSync(path.join((source as { folder: string }).folder, 'Dockerfile'), `FROM ${image}\n`);
    for (let turn = 0; turn < 2; turn += 1)
      await expect(build({ source })).rejects.toMatchObject({ code: 'source_invalid', message: expect.stringContaining('has ONBUILD') });
  });

  test('an image by name: its port and digest, or why not', async () => {
    const named = (image: string, port: number | null) => build({ source: { kind: 'image', image, port } });
    const { artifact, lines } = await named(engine.image, 9_000);
    expect(artifact).toMatchObject({ digest: `sha256:${engine.ask('inspect', '-f', '{{.Id}}', engine.image)}`, port: 9_000 });
    expect(lines.at(-1)?.text).toContain(engine.image);
    await expect(named(engine.image, null)).rejects.toMatchObject({
      code: 'source_invalid',
      message: expect.stringContaining('exposes no port'),
    });
    await expect(named('localhost/palestra-test/absent', 1)).rejects.toMatchObject({
      code: 'build_failed',
      message: expect.stringContaining('localhost/palestra-test/absent'),
    });
    const two = await build({ source: dockerfile(['EXPOSE 1 2']) });
    const twoName = `localhost/palestra-test/two:${process.pid}`;
    engine.ask('tag', two.artifact.digest, twoName);
    await expect(named(twoName, null)).rejects.toMatchObject({ message: expect.stringContaining('1, 2') });
    // What is not public: images of other tenants, by their name or id, and addresses.
    const [tag] = engine.lines('images', '--no-trunc', '--format', '{{.Repository}}:{{.Tag}}', `localhost/palestra/${engine.installation}`);
    const id = two.artifact.digest.slice(7);
    for (const name of [tag!, two.artifact.digest, id, 'localhost:1/absent', '127.0.0.1/absent']) {
      await expect(named(name, 1), name).rejects.toMatchObject({
        code: 'source_invalid',
        message: expect.stringContaining('cannot be used'),
      });
      const copied = build({ source: dockerfile([`COPY --from=${name} /usr /usr`]) });
      await expect(copied, name).rejects.toMatchObject({ code: 'source_invalid', message: expect.stringContaining('cannot be used') });
    }
    // The beginning of an id is a name of a registry.
    const started = folderWith(engine, { Dockerfile: `FROM ${id.slice(0, 8)}\n` });
    const plan = { kind: 'dockerfile', dockerfile: 'Dockerfile', port: 1, variables: {} } as const;
    await expect(build({ source: { kind: 'folder', folder: started, plan } })).rejects.toMatchObject({
      code: 'build_failed',
      message: expect.stringContaining(`docker.io/library/${id.slice(0, 8)}:latest is not on the engine`),
    });
  });

  test('images that do not run: said when they start, or when they end', async () => {
    const odd = await build({ source: dockerfile(['CMD ["/no/such/program"]']) });
    await expect(provider.ensure(specOf(odd.artifact), soon())).rejects.toMatchObject({
      code: 'instance_failed',
      message: expect.stringContaining('/no/such/program'),
    });
    const short = await build({ source: dockerfile(['CMD ["node", "-e", "console.log(\'no key\'); process.exit(4)"]']) });
    const spec = specOf(short.artifact);
    await provider.ensure(spec, soon());
    const found = async () => (await provider.list(soon())).find(({ id }) => id === spec.id);
    await expect.poll(async () => (await found())?.exit).toEqual({ code: 4, reason: expect.stringContaining('status 4') });
    const said: string[] = [];
    for await (const { text } of provider.logs(spec.id, null, soon())) said.push(text);
    expect(said).toEqual(['no key']);
    const absent = { ...short.artifact, image: `sha256:${'0'.repeat(64)}` };
    await expect(provider.ensure(specOf(absent), soon())).rejects.toMatchObject({
      code: 'instance_failed',
      message: expect.stringContaining('Deploy'),
    });
  });

  test('a user by name runs as that user, unless it is root by another name', async () => {
    const accounts = 'root:x:0:0::/:/\\ntoor:x:0:0::/:/\\nplayer:x:1234:5678::/:/\\n';
    for (const [user, ids] of [
      ['player', { uid: 1_234, gid: 5_678 }],
      ['toor', { uid: 65_534, gid: 65_534 }],
      ['0:0', { uid: 65_534, gid: 65_534 }],
      ['4321', { uid: 4_321, gid: 4_321 }],
    ] as const) {
      const lines = [
        run(`require('fs').writeFileSync('/etc/passwd', '${accounts}')`),
        'COPY server.mjs /',
        `USER ${user}`,
        'CMD ["node", "/server.mjs"]',
      ];
      const { artifact } = await build({ source: dockerfile(lines, { 'server.mjs': SERVER }) });
      expect(await call(await startInstance(provider, specOf(artifact)), 'self'), user).toMatchObject(ids);
    }
  });

  test('a VOLUME of an image holds temporary files of its user, within the limit', async () => {
    const lines = [
      run("const fs = require('fs'); fs.mkdirSync('/data/in', { recursive: true }); fs.chownSync('/data', 1000, 1000)"),
      'VOLUME ["/data/", "/data/in"]',
      'VOLUME /tmp /run/secrets/palestra',
      'COPY server.mjs /',
      'WORKDIR /data',
      'USER 1000:1000',
      'CMD ["node", "/server.mjs"]',
    ];
    const { artifact } = await build({ source: dockerfile(lines, { 'server.mjs': SERVER }) });
    const instance = await startInstance(provider, specOf(artifact, { secrets: { KEY: 'value' } }));
    expect(await call(instance, 'self')).toMatchObject({ uid: 1000, gid: 1000 });
    for (const folder of ['/data', '/data/in', '/tmp']) {
      expect(await call(instance, 'write', { file: `${folder}/x`, megabytes: 4 }), folder).toBe('written');
      expect(await call(instance, 'write', { file: `${folder}/x`, megabytes: 9 }), folder).toBe('ENOSPC');
    }
    expect(await call(instance, 'read', { file: '/run/secrets/palestra/KEY' })).toBe('value');
  });

  test('images of versions stay, others go', async () => {
    const [kept, gone, used] = await Promise.all(
      ['kept', 'gone', 'used'].map((name) =>
        build({ source: dockerfile([`ENV NAME=${name}`, 'COPY server.mjs /', 'CMD ["node", "/server.mjs"]'], { 'server.mjs': SERVER }) }),
      ),
    );
    await startInstance(provider, specOf(used!.artifact));
    const has = ({ artifact }: Built) => engine.lines('images', '-q', '--no-trunc').includes(artifact.digest);
    await provider.prune(new Set([kept!.artifact.digest]), soon());
    expect([has(kept!), has(gone!), has(used!)]).toEqual([true, false, true]);
    await removeAll(engine, provider);
    await provider.prune(new Set([kept!.artifact.digest]), soon());
    expect([has(kept!), has(used!)]).toEqual([true, false]);
    expect(engine.lines('images', '-q', '--no-trunc', engine.image)).toHaveLength(1);
  });
});
