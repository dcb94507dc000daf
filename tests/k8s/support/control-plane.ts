import { type ChildProcess, spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '@palestra/hosting';
import { newUuid } from '@palestra/kit';
import { Api } from './api.ts';
import { BRIDGE_ADDRESS } from './api-server-for-pods.ts';
import { auditOptions } from './audit.ts';

/** The program of tests/k8s/control-plane: `.ci/run` names it. Under CI there must be one. */
export const kubeProgram = process.env['PALESTRA_TEST_KUBE'];
if (kubeProgram === undefined && process.env['CI']) {
  throw new Error('PALESTRA_TEST_KUBE must name the program of tests/k8s/control-plane (see .ci/run); it is not set');
}

const READY_MS = 90_000;
const ADMIN = 'admin-token';

interface Ports {
  etcd: number;
  peers: number;
  server: number;
  controllers: number;
  scheduler: number;
}

/** etcd, API server, controllers and scheduler of one cluster without nodes, on loopback, in a folder of its own. */
export class ControlPlane {
  readonly folder = mkdtempSync(path.join(tmpdir(), 'palestra-test-cluster-'));
  readonly kubeconfig = path.join(this.folder, 'kubeconfig');
  readonly #ports: Ports;
  readonly #running = new Map<string, ChildProcess>();
  #admin: Api | null = null;

  private constructor(ports: Ports) {
    this.#ports = ports;
  }

  /** `prepare` runs before the controllers start: those look for new kinds of objects only now and then. */
  static async start(prepare?: (api: Api) => Promise<void>): Promise<ControlPlane> {
    const plane = new ControlPlane({
      etcd: await freePort(),
      peers: await freePort(),
      server: await freePort(),
      controllers: await freePort(),
      scheduler: await freePort(),
    });
    try {
      await plane.#start(prepare);
    } catch (error) {
      await plane.stop();
      throw error;
    }
    return plane;
  }

  get url(): string {
    return `https://127.0.0.1:${this.#ports.server}`;
  }

  /** Certificate of the API server, which signs itself. */
  get ca(): string {
    return readFileSync(path.join(this.folder, 'pki/apiserver.crt'), 'utf8');
  }

  get key(): string {
    return readFileSync(path.join(this.folder, 'pki/apiserver.key'), 'utf8');
  }

  /** As administrator. */
  get api(): Api {
    return (this.#admin ??= this.as(ADMIN));
  }

  /** With another token. */
  as(token: string): Api {
    return new Api({ at: { url: this.url, ca: this.ca, token } });
  }

  /** Text of a kubeconfig for a token, default: the administrator's. */
  config(token = ADMIN, namespace = 'default'): string {
    return JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'test', cluster: { server: this.url, 'certificate-authority-data': Buffer.from(this.ca).toString('base64') } }],
      users: [{ name: 'test', user: { token } }],
      contexts: [{ name: 'test', context: { cluster: 'test', user: 'test', namespace } }],
      'current-context': 'test',
    });
  }

  /** A namespace of its own, ready for pods. Deleting one takes ten seconds, so nobody waits for it. */
  async namespace(prefix = 'test'): Promise<string> {
    const name = `${prefix}-${newUuid().slice(-12)}`;
    await this.api.post('/api/v1/namespaces', { metadata: { name } });
    await until(
      `the service account of ${name}`,
      async () => (await this.api.find(`/api/v1/namespaces/${name}/serviceaccounts/default`)) !== null,
    );
    return name;
  }

  /** A token of a new service account with the rules of a Role; without rules it may do nothing. */
  async account(namespace: string, name: string, rules: object[]): Promise<string> {
    await this.api.post(`/api/v1/namespaces/${namespace}/serviceaccounts`, { metadata: { name } });
    if (rules.length > 0) {
      const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`;
      await this.api.post(`${rbac}/roles`, { metadata: { name }, rules });
      await this.api.post(`${rbac}/rolebindings`, {
        metadata: { name },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name },
        subjects: [{ kind: 'ServiceAccount', name, namespace }],
      });
    }
    const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 3_600 } };
    return (await this.api.post(`/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`, request)).status.token;
  }

  /** Without warning. */
  async killServer(): Promise<void> {
    await this.#end('apiserver', 'SIGKILL');
  }

  async startServer(): Promise<void> {
    const { etcd, server } = this.#ports;
    this.#run('apiserver', [
      `--etcd-servers=http://127.0.0.1:${etcd}`,
      '--bind-address=127.0.0.1',
      `--secure-port=${server}`,
      // Only for the certificate: pods see the server at this address.
      `--advertise-address=${BRIDGE_ADDRESS}`,
      '--cert-dir=pki',
      ...auditOptions(this.folder),
      '--service-cluster-ip-range=10.96.0.0/16',
      '--service-account-issuer=https://kubernetes.default.svc',
      '--service-account-key-file=pki/sa.pub',
      '--service-account-signing-key-file=pki/sa.key',
      '--token-auth-file=pki/tokens.csv',
      '--authorization-mode=RBAC',
      '--endpoint-reconciler-type=none',
      // Pods that are gone show up at once.
      '--default-watch-cache-size=100',
    ]);
    await until('the API server', async () => {
      this.#assertRuns('apiserver');
      // Each time with the certificate as it is then: the server may still write it.
      const probe = this.as(ADMIN);
      try {
        return (await probe.get('/readyz')) === 'ok';
      } finally {
        probe.close();
      }
    });
  }

  async stop(): Promise<void> {
    this.#admin?.close();
    await Promise.all(['scheduler', 'controller-manager', 'apiserver'].map((name) => this.#end(name, 'SIGKILL')));
    await this.#end('etcd', 'SIGKILL');
    rmSync(this.folder, { recursive: true, force: true });
  }

  async #start(prepare?: (api: Api) => Promise<void>): Promise<void> {
    const { etcd, peers, controllers, scheduler } = this.#ports;
    mkdirSync(path.join(this.folder, 'pki'));
    const { publicKey, privateKey } = generateKeyPairSync('rsa', {
      modulusLength: 2_048,
      publicKeyEncoding: { type: 'spki', format: 'pem' },
      privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    });
    this.#write('pki/sa.key', privateKey);
    this.#write('pki/sa.pub', publicKey);
    this.#write('pki/tokens.csv', `${ADMIN},admin,admin,system:masters\n`);
    const [client, peer] = [etcd, peers].map((port) => `http://127.0.0.1:${port}`);
    this.#run('etcd', [
      '--data-dir=etcd',
      '--unsafe-no-fsync',
      `--initial-cluster=default=${peer}`,
      `--listen-client-urls=${client}`,
      `--advertise-client-urls=${client}`,
      `--listen-peer-urls=${peer}`,
      `--initial-advertise-peer-urls=${peer}`,
    ]);
    await until('etcd', async () => {
      this.#assertRuns('etcd');
      return fetch(`${client}/health`).then(
        ({ ok }) => ok,
        () => false,
      );
    });
    await this.startServer();
    await prepare?.(this.api);
    this.#write('kubeconfig', this.config());
    const common = [`--kubeconfig=${this.kubeconfig}`, '--leader-elect=false', '--bind-address=127.0.0.1'];
    this.#run('controller-manager', [
      ...common,
      '--service-account-private-key-file=pki/sa.key',
      `--secure-port=${controllers}`,
      '--cert-dir=pki/controllers',
    ]);
    this.#run('scheduler', [...common, `--secure-port=${scheduler}`, '--cert-dir=pki/scheduler']);
  }

  #write(name: string, text: string): void {
    writeFileSync(path.join(this.folder, name), text, { mode: 0o600 });
  }

  #run(name: string, args: string[]): void {
    const log = openSync(path.join(this.folder, `${name}.log`), 'a');
    this.#running.set(name, spawn(kubeProgram!, [name, ...args], { cwd: this.folder, stdio: ['ignore', log, log] }));
    closeSync(log);
  }

  #assertRuns(name: string): void {
    if (this.#running.get(name)?.exitCode == null) return;
    const log = readFileSync(path.join(this.folder, `${name}.log`), 'utf8');
    throw new Error(`${name} ended:\n${log.slice(-3_000)}`);
  }

  async #end(name: string, signal: NodeJS.Signals): Promise<void> {
    const child = this.#running.get(name);
    this.#running.delete(name);
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
  }
}

/** Errors of `is` count as "not yet", except those of a program that ended. */
export async function until(what: string, is: () => Promise<boolean>): Promise<void> {
  for (const deadline = Date.now() + READY_MS; ; await sleep(50)) {
    const done = await is().catch((error: Error) => {
      if (/ ended:\n/.test(error.message)) throw error;
      return false;
    });
    if (done) return;
    if (Date.now() > deadline) throw new Error(`${what} is not ready after ${READY_MS / 1_000} s`);
  }
}
