import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { agentSandboxRules, documentedRules, sandboxRules } from '../k8s/support/documented-role.ts';
import { chart, type ChartWorld, program, run, startChartWorld } from './chart.world.ts';
import { writeSchemas } from './kubernetes-schemas.ts';

/** What deploy/helm/palestra renders, before a control plane that checks each object as in an installation. */
const fullValues = path.join(import.meta.dirname, 'full-values.yaml');
const LEAST = ['--set', 'existingSecret=palestra,publicUrl=https://palestra.example,s3.bucket=palestra'];
const KUBERNETES = '1.33.0';
let world: ChartWorld;

beforeAll(async () => {
  world = await startChartWorld();
});
afterAll(() => world?.close());

const render = (...values: string[]) =>
  world.helm('template', 'palestra', chart, '--namespace', world.namespace, '--kube-version', KUBERNETES, ...values);
const objectsOf = (text: string): any[] =>
  parseAllDocuments(text)
    .map((document) => document.toJS())
    .filter((one) => one !== null);

describe.each([
  ['the values that an installation needs', LEAST],
  ['all values', ['-f', fullValues]],
])('with %s', (_name, values) => {
  test('helm lint finds nothing', async () => {
    expect(await world.helm('lint', '--strict', '--kube-version', KUBERNETES, chart, ...values)).toContain('0 chart(s) failed');
  });

  test('kubeconform accepts each object, without unknown fields', async () => {
    const schemas = path.join(world.folder, 'schemas');
    await writeSchemas(await world.plane.api.get('/openapi/v2'), schemas);
    const file = path.join(world.folder, 'rendered.yaml');
    await writeFile(file, await render(...values));
    // The resources of the Prometheus operator have no schema here.
    const options = [
      '-strict',
      '-summary',
      '-skip',
      'ServiceMonitor,PodMonitor',
      '-schema-location',
      `${schemas}/{{.ResourceKind}}{{.KindSuffix}}.json`,
    ];
    const { stdout } = await run(program('PALESTRA_TEST_KUBECONFORM'), [...options, file]);
    expect(stdout).toMatch(/Valid: \d\d?, Invalid: 0, Errors: 0/);
    expect(await rejects(options, file)).toMatch(/additionalProperties|additional properties/);
  });

  test('the API server accepts each object, also its values', async () => {
    const objects = objectsOf(await render(...values, '--set', `hosting.kubernetes.namespace=${world.environments}`));
    const known = objects.filter(({ apiVersion }) => !apiVersion.startsWith('monitoring.coreos.com/'));
    expect(known.length).toBeGreaterThan(8);
    for (const object of known) await dryRun(object);
    const budget = known.find(({ kind }) => kind === 'PodDisruptionBudget');
    await expect(dryRun({ ...budget, spec: { ...budget.spec, maxUnavailable: 'one' } })).rejects.toThrow(/maxUnavailable/);
  });
});

/** Sends an object without storing it. */
function dryRun({ apiVersion, kind, metadata, ...rest }: any): Promise<unknown> {
  const group = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const plural = kind.endsWith('y') ? `${kind.slice(0, -1)}ies` : kind.endsWith('s') ? `${kind}es` : `${kind}s`;
  const place = kind.startsWith('Cluster') ? '' : `/namespaces/${metadata.namespace ?? world.namespace}`;
  const at = `${group}${place}/${plural.toLowerCase()}/${metadata.name}`;
  const query = 'fieldManager=palestra-test&dryRun=All&fieldValidation=Strict';
  return world.plane.api.request('PATCH', `${at}?${query}`, { apiVersion, kind, metadata, ...rest }, 'application/apply-patch+yaml');
}

/** What kubeconform says of the same objects with a field that does not exist: the schemas are strict. */
async function rejects(options: string[], file: string): Promise<string> {
  const broken = `${file}.broken.yaml`;
  await run('sh', ['-c', 'sed "s/terminationGracePeriodSeconds:/terminationGracePeriod:/" "$0" > "$1"', file, broken]);
  return run(program('PALESTRA_TEST_KUBECONFORM'), [...options, broken]).then(
    () => 'it accepts them',
    ({ stdout }: { stdout: string }) => stdout,
  );
}

test.each([
  ['postgresql.connections=50', /postgresql.connections: 2 replicas and 1 workers may open 162 connections, but PostgreSQL grants 50/],
  ['existingSecret=', /existingSecret: create the Secret/],
  ['api.replicaCount=3', /additional properties 'replicaCount' not allowed|Additional property replicaCount is not allowed/],
  ['api.replicas=0', /minimum/],
])('values that cannot work are an error: %s', async (value, message) => {
  const error = await render(...LEAST, '--set', value).catch(({ stderr }: { stderr: string }) => stderr);
  expect(error).toMatch(message);
});

test('no pod has rights without hosting, and only workers with it', async () => {
  const tokens = (objects: any[]): string[] =>
    objects.filter(({ spec }) => spec?.template?.spec.automountServiceAccountToken).map(({ metadata }) => metadata.name);
  const without = objectsOf(await render(...LEAST));
  expect(tokens(without)).toEqual([]);
  expect(without.filter(({ kind }) => /^(Cluster)?Role/.test(kind))).toEqual([]);
  const full = objectsOf(await render('-f', fullValues));
  expect(tokens(full).toSorted()).toEqual(['palestra', 'palestra-worker']);
  const rules = (kind: string) => full.filter((one) => one.kind === kind).flatMap((one) => one.rules);
  expect(rules('ClusterRole')).toEqual([{ apiGroups: [''], resources: ['nodes'], verbs: ['list'] }]);
  const byDefault = objectsOf(await render(...LEAST, '--set', 'hosting.kubernetes.enabled=true'));
  expect(tokens(byDefault)).toEqual(['palestra-worker']);
  expect(byDefault.filter(({ kind }) => kind.startsWith('Cluster'))).toEqual([]);
  // docs/hosting.md has the same Roles, with which all other tests run.
  expect(byDefault.filter(({ kind }) => kind === 'Role').flatMap((one) => one.rules)).toEqual(documentedRules());
  expect(new Set(rules('Role'))).toEqual(new Set([...agentSandboxRules(), ...sandboxRules()]));
});

test('the annotations of the README give each ingress controller its settings', async () => {
  const readme = await readFile(path.join(chart, 'README.md'), 'utf8');
  const blocks = [...readme.matchAll(/```yaml\n(ingress:[\s\S]*?)```/g)].map(([, block]) => block!);
  expect(blocks.length).toBeGreaterThan(2);
  for (const block of blocks) {
    const file = path.join(world.folder, 'ingress.yaml');
    await writeFile(file, block);
    const ingress = objectsOf(await render('-f', fullValues, '-f', file)).find(({ kind }) => kind === 'Ingress');
    expect(ingress.metadata.annotations).toMatchObject(parse(block).ingress.annotations);
    await dryRun(ingress);
  }
});
