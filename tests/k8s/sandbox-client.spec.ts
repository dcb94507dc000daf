import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { clientEnv } from '../conformance/support/client-env.ts';
import { expectSandboxTour } from '../conformance/support/sandbox-tour.ts';
import { engineCommand } from '../integration/hosting/docker-engine.world.ts';
import { machineAddress, startEcho } from '../integration/sandboxes/sandboxes.world.ts';
import { type Palestra, startPalestra } from '../support/palestra.ts';
import { makeShellImage } from '../support/shell-image.ts';
import { type Cluster, startCluster } from './support/cluster.ts';
import { kubeProgram } from './support/control-plane.ts';
import { documentedRules, sandboxRules } from './support/documented-role.ts';

/** Sandboxes with the unmodified client of openreward 0.1.167, in pods. */
describe.skipIf(kubeProgram === undefined || engineCommand === undefined)('the sandbox client with a cluster', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'palestra-k8s-'));
  let cluster: Cluster;
  let namespace: string;
  let image: string;
  let echo: Awaited<ReturnType<typeof startEcho>>;
  let palestra: Palestra;
  let deployment: string;

  beforeAll(async () => {
    [cluster, echo] = await Promise.all([startCluster(), startEcho()]);
    image = makeShellImage(engineCommand!);
    const { plane, engine } = cluster;
    namespace = await plane.namespace();
    const kubeconfig = path.join(folder, 'kubeconfig');
    const rules = [...documentedRules(), ...sandboxRules()];
    writeFileSync(kubeconfig, plane.config(await plane.account(namespace, 'palestra', rules), namespace));
    palestra = await startPalestra({
      env: {
        PALESTRA_BUNDLED_ENVIRONMENTS: '1',
        PALESTRA_HOSTING: 'kubernetes',
        KUBECONFIG: kubeconfig,
        PALESTRA_KUBERNETES_CALLER_NETWORKS: '10.88.0.1',
        PALESTRA_KUBERNETES_NETWORK_POLICY: '1',
        PALESTRA_BASE_IMAGE_NODE: engine.image,
        PALESTRA_SANDBOX_HTTP_HOSTS: machineAddress(),
      },
    });
    deployment = `${palestra.namespace}/shell`;
    const source = { kind: 'bundled', name: 'echo' };
    await request('/v1/environments', { name: 'shell', namespace: palestra.namespace, description: '', source });
    await uploadToBucket('public/task.txt', 'of the bucket\n');
    await uploadToBucket('hidden/answer.txt', '42');
  });
  afterAll(async () => {
    await palestra?.stop();
    echo?.close();
    await cluster?.close();
    cluster?.engine.ask('rmi', '-f', image);
    rmSync(folder, { recursive: true, force: true });
  });

  async function request(url: string, body?: object): Promise<any> {
    const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
    const headers = { 'x-api-key': palestra.apiKey, 'content-type': 'application/json' };
    const answer = await fetch(palestra.url + url, { ...init, headers });
    if (!answer.ok) throw new Error(await answer.text());
    return answer.json();
  }

  async function uploadToBucket(fileName: string, text: string): Promise<void> {
    const { id: environmentId } = await request(`/v1/environments/${deployment}`);
    const { urls } = await request('/v1/files/upload-urls', { environmentId, files: [{ fileName, contentType: 'text/plain' }] });
    const put = await fetch(urls[0].uploadUrl, { method: 'PUT', body: text, headers: { 'content-type': 'text/plain' } });
    if (!put.ok) throw new Error(`the upload failed: ${put.status} ${await put.text()}`);
  }

  const pods = async () =>
    (await cluster.plane.api.get<{ items: any[] }>(`/api/v1/namespaces/${namespace}/pods`)).items.map(({ metadata }) => metadata.name);

  test('runs commands, moves files, keeps its network rules, and leaves nothing behind', async () => {
    await expectSandboxTour([deployment, image, echo.url], clientEnv(palestra));
    await expect.poll(pods).toEqual([]);
  });
});
