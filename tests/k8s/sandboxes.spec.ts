import { execFileSync } from 'node:child_process';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { type KubernetesProviderOptions, packFiles, type SandboxProvider, type SandboxSpec } from '@palestra/hosting';
import { newUuid } from '@palestra/kit';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { engineCommand } from '../integration/hosting/docker-engine.world.ts';
import { soon } from '../integration/hosting/docker-instances.world.ts';
import { machineAddress, startEcho } from '../integration/sandboxes/sandboxes.world.ts';
import { makeShellImage } from '../support/shell-image.ts';
import { type Cluster, startCluster } from './support/cluster.ts';
import { kubeProgram } from './support/control-plane.ts';
import { sandboxRules } from './support/documented-role.ts';
import { providerOf } from './support/provider.world.ts';

/**
 * Sandboxes as pods, with the rights of docs/hosting.md. The network of the test cluster enforces no policies: the objects are compared, and
 * gateways are tested by their proxy.
 */
describe.skipIf(kubeProgram === undefined || engineCommand === undefined)('sandboxes in pods', () => {
  let cluster: Cluster;
  let namespace: string;
  let token: string;
  let sandboxes: SandboxProvider;
  let image: string;

  beforeAll(async () => {
    cluster = await startCluster();
    namespace = await cluster.plane.namespace();
    token = await cluster.plane.account(namespace, 'sandboxes', sandboxRules());
    sandboxes = sandboxesOf();
    image = makeShellImage(engineCommand!);
  });
  afterAll(async () => {
    await cluster?.close();
    cluster?.engine.ask('rmi', '-f', image);
  });
  afterEach(async () => {
    for (const { id } of await sandboxes.list(soon())) await sandboxes.remove(id, soon());
    const left = (await listOf('/api/v1', 'pods')).map(({ metadata }) => metadata.name);
    if (left.length > 0) throw new Error(`left behind: ${left.join(', ')}`);
    // The cluster removes what belongs to them.
    await vi.waitFor(
      async () => {
        const owned = [...(await listOf('/api/v1', 'secrets')), ...(await policies()).filter(isOfSandbox)];
        if (owned.length > 0) throw new Error(`left behind: ${owned.map(({ metadata }) => metadata.name).join(', ')}`);
      },
      { timeout: 60_000, interval: 200 },
    );
  });

  const sandboxesOf = (options: Partial<KubernetesProviderOptions> = {}): SandboxProvider =>
    providerOf(cluster.plane.config(token, namespace), {
      installation: cluster.engine.installation,
      sandboxes: { gatewayImage: cluster.engine.image, plainHosts: [machineAddress()] },
      ...options,
    }).sandboxes;
  const listOf = async (api: string, kind: string) =>
    (await cluster.plane.api.get<{ items: any[] }>(`${api}/namespaces/${namespace}/${kind}`)).items;
  const policies = () => listOf('/apis/networking.k8s.io/v1', 'networkpolicies');
  const isOfSandbox = ({ metadata }: any) => metadata.labels['palestra.dev/sandbox'] !== undefined;
  const podOf = (id: string, kind = 'sandbox') => cluster.plane.api.get(`/api/v1/namespaces/${namespace}/pods/palestra-${kind}-${id}`);

  const create = async (given: Partial<SandboxSpec> = {}, from = sandboxes) => {
    const spec: SandboxSpec = {
      id: newUuid(),
      environment: 'acme/shell',
      image,
      resources: { cpus: 1, memoryMb: 256, pids: 64 },
      variables: {},
      network: { kind: 'none' },
      sidecars: [],
      hostAliases: [],
      ...given,
    };
    await from.create(spec, soon());
    return spec.id;
  };
  const bash = async (id: string, command: string, given: { timeoutMs?: number; maxBytes?: number; stdin?: Buffer } = {}) => {
    const request = { command: ['/bin/bash', '-c', command], timeoutMs: 20_000, maxBytes: 50_000, ...given };
    const { output, ...rest } = await sandboxes.exec(id, request, soon());
    return { ...rest, output: output.toString() };
  };

  test('commands have an exit status, an output, an input, a limit of output and a timeout', async () => {
    const id = await create({ variables: { GREETING: 'hi $(there)' } });
    expect(await bash(id, 'echo $GREETING; echo error >&2; exit 3')).toEqual({
      exitCode: 3,
      timedOut: false,
      truncated: false,
      output: 'hi $(there)\nerror\n',
    });
    expect(await bash(id, 'printf abcdef', { maxBytes: 4 })).toEqual({ exitCode: 0, output: 'abcd', timedOut: false, truncated: true });
    expect((await bash(id, 'head -c 3000000 /dev/zero', { maxBytes: 2_500_000 })).output.length).toBe(2_500_000);
    expect((await bash(id, 'wc -c', { stdin: Buffer.alloc(3_000_000, 1) })).output.trim()).toBe('3000000');
    expect(await bash(id, 'exit 124')).toMatchObject({ exitCode: 124, timedOut: false });
    expect((await bash(id, 'kill -9 $$')).exitCode).toBe(137);
    const missing = { command: ['/no/such'], timeoutMs: 5_000, maxBytes: 100 };
    expect((await sandboxes.exec(id, missing, soon())).exitCode).toBe(127);
    await expect(sandboxes.exec(id, { ...missing, user: 'root' }, soon())).rejects.toMatchObject({ code: 'hosting_unsupported' });

    const started = Date.now();
    expect(await bash(id, '(sleep 100; touch /tmp/late) & echo begun; sleep 100', { timeoutMs: 3_000 })).toMatchObject({
      exitCode: 124,
      timedOut: true,
      output: 'begun\n',
    });
    expect((await bash(id, 'for p in /proc/[0-9]*; do cat $p/cmdline; echo; done')).output).not.toContain('sleep\x00100');
    // A process that is left behind does not hold a command.
    expect((await bash(id, 'sleep 90 & echo done')).output).toBe('done\n');
    const stop = new AbortController();
    setTimeout(() => stop.abort(new Error('enough')), 300);
    await expect(sandboxes.exec(id, { ...missing, command: ['sleep', '80'] }, stop.signal)).rejects.toThrow('enough');
    expect(Date.now() - started).toBeLessThan(60_000);
  });

  test('files are read, written, packed and unpacked, and neither links nor folders are read', async () => {
    const id = await create();
    const content = Buffer.from(Array.from({ length: 5_000 }, (_, index) => index % 256));
    const path = "/tmp/a folder/it's $HOME";
    await sandboxes.write(id, path, content, soon());
    expect(await sandboxes.stat(id, path, soon())).toEqual({ kind: 'file', size: 5_000 });
    expect(await sandboxes.read(id, path, { offset: 4_990, length: 100 }, soon())).toEqual(content.subarray(4_990));
    await bash(id, 'ln -s /etc/passwd /tmp/link');
    expect(await sandboxes.stat(id, '/tmp/link', soon())).toEqual({ kind: 'symlink' });
    expect(await sandboxes.stat(id, '/tmp', soon())).toEqual({ kind: 'other' });
    expect(await sandboxes.stat(id, '/none', soon())).toBeNull();

    const large = Buffer.alloc(2_500_000, 'large');
    async function* files() {
      yield { name: 'data', size: 0, body: null };
      yield { name: 'data/large', size: large.length, body: Readable.from([large]) };
    }
    await sandboxes.upload(id, '/', packFiles(files()), soon());
    expect((await bash(id, 'stat -c "%a %s" /data/large')).output).toBe(`444 ${large.length}\n`);
    const input = await buffer(await sandboxes.download(id, '/data', soon()));
    expect(execFileSync('tar', ['-tf', '-'], { input }).toString()).toBe('data/\ndata/large\n');
    expect(execFileSync('tar', ['-xOf', '-', 'data/large'], { input, maxBuffer: 2 ** 24 }).equals(large)).toBe(true);
    await expect(sandboxes.download(id, '/none', soon())).rejects.toMatchObject({ code: 'instance_failed' });
    await expect(sandboxes.upload(id, '/none', packFiles(files()), soon())).rejects.toThrow('cannot be unpacked');
    const broken = packFiles(
      (async function* () {
        yield { name: 'one', size: 0, body: null };
        throw new Error('the store is away');
      })(),
    );
    await expect(sandboxes.upload(id, '/', broken, soon())).rejects.toThrow('the store is away');
  });

  test('its code has few rights, and sidecars share its network', async () => {
    const server = 'require("http").createServer((q, a) => a.end(process.env.SAYS)).listen(8000, "127.0.0.1")';
    const sidecar = { image, args: null, variables: { SAYS: 'from the sidecar' } };
    const id = await create({
      sidecars: [
        { ...sidecar, name: 'db', command: ['/usr/bin/node', '-e', server] },
        { ...sidecar, name: 'Once_only', command: ['/usr/bin/true'] },
      ],
      hostAliases: [{ ip: '127.0.0.1', hostnames: ['DB'] }],
    });
    const status = (await bash(id, 'cat /proc/self/status; id -u')).output;
    expect(status).toMatch(/NoNewPrivs:\s*1\n/);
    expect(status).toMatch(/CapBnd:\s*00000000000000fb\n/);
    expect(status).toMatch(/\n0\n$/);
    const ask = 'fetch("http://db:8000").then((a) => a.text()).then(console.log)';
    await expect.poll(async () => (await bash(id, `node -e '${ask}'`)).output, { timeout: 20_000 }).toContain('from the sidecar');
    const { spec, metadata } = await podOf(id);
    expect(metadata.labels).toMatchObject({ 'palestra.dev/role': 'sandbox', 'palestra.dev/egress': 'none', 'palestra.dev/sandbox': id });
    const limits = { cpu: '1', memory: '256Mi', 'ephemeral-storage': '16Gi' };
    expect(spec).toMatchObject({
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      restartPolicy: 'Never',
      dnsPolicy: 'None',
      activeDeadlineSeconds: 604_800,
      securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
      containers: [{ name: 'sandbox' }, { name: 'sidecar-0' }, { name: 'sidecar-1' }],
    });
    for (const one of spec.containers) {
      expect(one.resources.limits).toEqual(limits);
      expect(one.securityContext).toMatchObject({ allowPrivilegeEscalation: false, privileged: false, capabilities: { drop: ['ALL'] } });
    }
    await expect(create({ sidecars: [{ ...sidecar, name: 'db', command: ['/no/such'] }] })).rejects.toMatchObject({
      code: 'instance_failed',
      message: expect.stringMatching(/^The sidecar "db" could not be started: .* Check its command\.$/s),
    });
  });

  test('a gateway decides each request, its rules are replaced, and a policy lets the sandbox out to it alone', async () => {
    const server = await startEcho();
    const { url } = server;
    const host = machineAddress();
    const rule = (action: 'allow' | 'deny', path: string | null, methods: string[] | null = null) => ({ action, host, path, methods });
    const rules = [rule('deny', '/simple/Requests/*'), rule('allow', '/simple/*', ['GET'])];
    const id = await create({ network: { kind: 'policy', rules, enforce: true } });
    const get = async (path: string, method = 'GET') => {
      const code = `const p = new URL(process.env.HTTP_PROXY); require('http').request({ host: p.hostname, port: p.port, path: '${url}${path}', method: '${method}' }, (a) => { let t = ''; a.on('data', (d) => t += d).on('end', () => console.log(a.statusCode, t)); }).on('error', (e) => console.log(e.code)).end()`;
      return (await bash(id, `node -e "${code}"`)).output.trim();
    };
    try {
      expect(await get('/simple/numpy/')).toBe('200 GET /simple/numpy/');
      expect(await get('/simple/numpy/', 'POST')).toContain('403');
      expect(await get('/simple/requests/')).toContain('blocked by sandbox network policy');
      await sandboxes.setNetwork(id, { kind: 'policy', rules: [], enforce: false }, soon());
      expect(await get('/other')).toBe('200 GET /other');
      // A connection of the old rules is closed.
      const held = `const p = new URL(process.env.HTTP_PROXY); require('net').connect(p.port, p.hostname, () => console.log('open')).on('close', () => console.log('closed'))`;
      const holding = bash(id, `node -e "${held}"`, { timeoutMs: 60_000 });
      await expect.poll(async () => (await bash(id, 'cat /proc/net/tcp')).output).toMatch(/:0C38 01 /);
      await sandboxes.setNetwork(id, { kind: 'hosts', hosts: [] }, soon());
      expect((await holding).output).toBe('open\nclosed\n');
      expect(await get('/other')).toContain('403');
    } finally {
      server.close();
    }
    const [sandbox, gateway] = [await podOf(id), await podOf(id, 'gateway')];
    const labels = { 'palestra.dev/installation': cluster.engine.installation, 'palestra.dev/sandbox': id };
    expect(sandbox.metadata.labels).toMatchObject({ ...labels, 'palestra.dev/egress': 'none' });
    expect(gateway.metadata.labels).toMatchObject({ ...labels, 'palestra.dev/egress': 'gateway' });
    const all = await policies();
    expect(all.find(isOfSandbox)).toMatchObject({
      metadata: { ownerReferences: [{ uid: gateway.metadata.uid }] },
      spec: {
        podSelector: { matchLabels: { ...labels, 'palestra.dev/role': 'sandbox' } },
        policyTypes: ['Egress'],
        egress: [
          {
            to: [{ podSelector: { matchLabels: { ...labels, 'palestra.dev/role': 'gateway' } } }],
            ports: [{ protocol: 'TCP', port: 3_128 }],
          },
        ],
      },
    });
    const general = all.find(({ metadata }) => metadata.name.endsWith('-gateway'));
    expect(general.spec.egress).toEqual([{}]);
    expect(general.spec.ingress[0].from[0].podSelector.matchLabels).toMatchObject({ 'palestra.dev/role': 'sandbox' });
    expect(await listOf('/api/v1', 'secrets')).toMatchObject([
      { immutable: true, metadata: { ownerReferences: [{ uid: gateway.metadata.uid }] } },
    ]);
  });

  test('what a cluster cannot enforce is refused, and so are images of environments', async () => {
    const weak = sandboxesOf({ enforcesNetworkPolicy: false });
    const hosts = { kind: 'hosts', hosts: ['pypi.org'] } as const;
    for (const network of [{ kind: 'none' }, hosts, { kind: 'policy', rules: [], enforce: true }] as const)
      await expect(create({ network }, weak)).rejects.toMatchObject({ code: 'hosting_unsupported' });
    const builds = {
      registry: 'registry.example/acme',
      registrySecret: null,
      registryNetworks: [],
      builderImage: null,
      images: {},
      pythonPackage: null,
    };
    const building = sandboxesOf({ builds });
    await expect(create({ image: 'registry.example/acme/environments:1' }, building)).rejects.toMatchObject({ code: 'source_invalid' });
    const id = await create({ network: { kind: 'open' } }, weak);
    expect((await podOf(id)).metadata.labels['palestra.dev/egress']).toBe('open');
    expect((await bash(id, 'echo -$HTTP_PROXY-')).output).toBe('--\n');
    await expect(sandboxes.setNetwork(id, hosts, soon())).rejects.toMatchObject({ code: 'hosting_unsupported' });
  });

  test('an image that is missing fails at once, and a sandbox that is gone is lost', async () => {
    await expect(create({ image: 'localhost/palestra-test/none:1' })).rejects.toMatchObject({
      code: 'build_failed',
      message: expect.stringContaining('localhost/palestra-test/none:1'),
    });
    await expect(create({ image: cluster.engine.image })).rejects.toMatchObject({ message: expect.stringContaining('must have /bin/sh') });
    const [ended, removed] = [await create(), await create({ network: { kind: 'hosts', hosts: [] } })];
    expect((await sandboxes.list(soon())).toSorted((a, b) => a.id.localeCompare(b.id))).toEqual(
      [ended, removed].toSorted((a, b) => a.localeCompare(b)).map((id) => ({ id, running: true })),
    );
    // The command may end with its sandbox, before it says how.
    await bash(ended, 'kill -TERM 1').catch(() => null);
    await expect.poll(async () => (await sandboxes.list(soon())).find(({ id }) => id === ended)?.running).toBe(false);
    await expect(bash(ended, 'true')).rejects.toMatchObject({ code: 'sandbox_lost' });
    await sandboxes.remove(removed, soon());
    await sandboxes.remove(removed, soon());
    await expect(bash(removed, 'true')).rejects.toMatchObject({ code: 'sandbox_lost' });
    await expect(sandboxes.setNetwork(removed, { kind: 'none' }, soon())).rejects.toMatchObject({ code: 'sandbox_lost' });
    expect((await sandboxes.list(soon())).map(({ id }) => id)).toEqual([ended]);
  });
});
