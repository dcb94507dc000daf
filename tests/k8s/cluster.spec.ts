import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { engineCommand } from '../integration/hosting/docker-engine.world.ts';
import type { ApiRefusal } from './support/api.ts';
import { type Cluster, startCluster } from './support/cluster.ts';
import { kubeProgram } from './support/control-plane.ts';
import { TestKubelet } from './support/kubelet.ts';

const SERVER = `
const http = require('node:http');
console.log('hello from ' + process.env.WHO + ' ' + process.env.TEXT + ' ' + require('node:fs').readFileSync('/etc/config/key', 'utf8'));
http.createServer((_, response) => response.end(process.env.WHO)).listen(8080);
process.on('SIGTERM', () => { console.log('ending'); process.exit(0); });
`;

/** What a client library does in a pod. */
const CLIENT = `
const fs = require('node:fs');
const read = (name) => fs.readFileSync('/var/run/secrets/kubernetes.io/serviceaccount/' + name, 'utf8');
const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = process.env;
const ask = (kind) => new Promise((resolve, reject) => {
  const options = { host, port, path: '/api/v1/namespaces/' + read('namespace') + '/' + kind, ca: read('ca.crt'), headers: { authorization: 'Bearer ' + read('token') } };
  require('node:https').get(options, (answer) => { answer.resume(); resolve(kind + ' ' + answer.statusCode); }).on('error', reject);
});
ask('pods').then(console.log).then(() => ask('secrets')).then(console.log).then(() => console.log(read('token')));
`;

/** The cluster that the other files test with: it must behave as a real one where they rely on it. */
describe.skipIf(kubeProgram === undefined || engineCommand === undefined)('the cluster of the tests', () => {
  let cluster: Cluster;
  let namespace: string;
  const pods = (more = '') => cluster.plane.api.get<{ items: any[] }>(`/api/v1/namespaces/${namespace}/pods${more}`);

  beforeAll(async () => {
    cluster = await startCluster();
    namespace = await cluster.plane.namespace();
  });
  afterAll(() => cluster?.close());

  test('a Deployment has pods that run, answer, write logs, and go', async () => {
    const { api } = cluster.plane;
    await api.post(`/api/v1/namespaces/${namespace}/configmaps`, { metadata: { name: 'config' }, data: { key: 'configured' } });
    const container = {
      name: 'server',
      image: cluster.engine.image,
      command: ['node', '-e', SERVER],
      env: [
        { name: 'WHO', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
        { name: 'TEXT', value: '$(WHO) and $$(WHO)' },
      ],
      readinessProbe: { httpGet: { path: '/', port: 8080 }, periodSeconds: 1 },
      securityContext: { runAsUser: 1000, readOnlyRootFilesystem: true },
      volumeMounts: [{ name: 'config', mountPath: '/etc/config' }],
    };
    const labels = { app: 'hello' };
    const deployment = `/apis/apps/v1/namespaces/${namespace}/deployments/hello`;
    await api.apply(deployment, {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'hello' },
      spec: {
        replicas: 2,
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: { containers: [container], volumes: [{ name: 'config', configMap: { name: 'config' } }] },
        },
      },
    });
    await expect.poll(async () => (await api.get(deployment)).status.readyReplicas).toBe(2);
    const { items } = await pods();
    for (const { metadata, status } of items) {
      expect(await (await fetch(`http://${status.podIP}:8080/`)).text()).toBe(metadata.name);
      const log = await api.get<string>(`/api/v1/namespaces/${namespace}/pods/${metadata.name}/log`);
      expect(log).toBe(`hello from ${metadata.name} ${metadata.name} and $(WHO) configured\n`);
    }
    await api.merge(deployment, { spec: { replicas: 0 } });
    await expect.poll(async () => (await pods()).items).toEqual([]);
  });

  test('a pod reaches the API server as its own service account, until it is gone', async () => {
    const { plane, engine } = cluster;
    await plane.account(namespace, 'reader', [{ apiGroups: [''], resources: ['pods'], verbs: ['list'] }]);
    const spec = {
      serviceAccountName: 'reader',
      restartPolicy: 'Never',
      containers: [{ name: 'main', image: engine.image, command: ['node', '-e', CLIENT] }],
    };
    await plane.api.post(`/api/v1/namespaces/${namespace}/pods`, { metadata: { name: 'reader' }, spec });
    const at = `/api/v1/namespaces/${namespace}/pods/reader`;
    await expect.poll(async () => (await plane.api.get(at)).status.phase).toBe('Succeeded');
    const [pods, secrets, token] = (await plane.api.get<string>(`${at}/log`)).trim().split('\n');
    expect([pods, secrets]).toEqual(['pods 200', 'secrets 403']);
    await plane.api.delete(at);
    const list = () => plane.as(token!).get(`/api/v1/namespaces/${namespace}/pods`);
    await expect
      .poll(() =>
        list().then(
          () => null,
          ({ status }: ApiRefusal) => status,
        ),
      )
      .toBe(401);
  });

  test('an image that is missing, a program that fails, and memory that is too little are in the status', async () => {
    const { api } = cluster.plane;
    const create = (name: string, image: string, code: string, restartPolicy = 'Never') =>
      api.post(`/api/v1/namespaces/${namespace}/pods`, {
        metadata: { name },
        spec: {
          restartPolicy,
          containers: [{ name: 'main', image, command: ['node', '-e', code], resources: { limits: { memory: '64Mi' } } }],
        },
      });
    const eat = 'const all = []; for (;;) all.push(Buffer.alloc(2 ** 24, 1));';
    const { image } = cluster.engine;
    await Promise.all([
      create('missing', 'localhost/palestra-test/nothing:1', ''),
      create('failing', image, 'process.exit(3)'),
      create('repeating', image, 'process.exit(4)', 'Always'),
      create('hungry', image, eat),
    ]);
    const of = async (name: string) => (await api.get(`/api/v1/namespaces/${namespace}/pods/${name}`)).status;
    await expect.poll(async () => (await of('missing')).containerStatuses?.[0].state.waiting.reason).toBe('ImagePullBackOff');
    await expect.poll(async () => (await of('failing')).containerStatuses?.[0].state.terminated?.exitCode).toBe(3);
    await expect.poll(async () => (await of('hungry')).containerStatuses?.[0].state.terminated?.exitCode).toBe(137);
    await expect.poll(async () => (await of('repeating')).containerStatuses?.[0].restartCount).toBeGreaterThan(1);
    expect((await of('failing')).phase).toBe('Failed');
    await api.delete(`/api/v1/namespaces/${namespace}/pods`, { gracePeriodSeconds: 0 });
    await expect.poll(async () => (await pods()).items).toEqual([]);
  });

  test('the API server comes back after a kill, and pods without containers look as if they ran', async () => {
    await cluster.plane.killServer();
    await cluster.plane.startServer();
    const fake = await TestKubelet.start({ plane: cluster.plane, engine: null });
    try {
      const spec = { nodeSelector: { 'palestra.test/runs': 'fake' }, containers: [{ name: 'main', image: 'nothing' }] };
      await cluster.plane.api.post(`/api/v1/namespaces/${namespace}/pods`, { metadata: { name: 'fake' }, spec });
      await expect.poll(async () => (await pods()).items[0]?.status.phase).toBe('Running');
      await cluster.plane.api.delete(`/api/v1/namespaces/${namespace}/pods/fake`);
      await expect.poll(async () => (await pods()).items).toEqual([]);
    } finally {
      await fake.close();
    }
  });
});
