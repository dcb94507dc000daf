import { expect, test } from 'vitest';
import { createSandboxSchema, MACHINE_SIZES, networkPolicySchema, policyOf, sandboxRequest } from './sandbox-settings.ts';
import { isSandboxVersion, swapSandboxVersion } from './sandbox-version.ts';

const settings = (given: object = {}) => ({ environment: 'acme/shell', image: 'python:3.12-slim', machine_size: '0.5:1', ...given });
const request = (given: object = {}) => sandboxRequest(createSandboxSchema.parse(settings(given)), ['mirror.internal']);

test('every size of the SDK is processors and gigabytes, and a GPU is refused', () => {
  const sized = MACHINE_SIZES.filter((size) => size.includes(':'));
  expect(sized).toHaveLength(17);
  for (const size of sized) {
    const { cpus, memoryMb } = request({ machine_size: size }).spec.resources;
    expect(`${cpus}:${memoryMb / 1_024}`).toBe(size);
  }
  expect(() => request({ machine_size: 'nvidia-l4' })).toThrow(expect.objectContaining({ code: 'hosting_unsupported' }));
  expect(createSandboxSchema.safeParse(settings({ machine_size: '3:3' })).success).toBe(false);
});

test('what is not known or not safe is refused', () => {
  const bad = [
    { new_promise: true },
    { image: 'localhost/palestra/installation:key' },
    { image: 'a/../b' },
    { image: 'a b' },
    { env: { 'A=B': 'c' } },
    { sidecars: [{ name: 'main', image: 'redis:7' }] },
    { host_aliases: [{ ip: 'db', hostnames: ['db'] }] },
    { bucket_config: { mount_path: '/data/../etc' } },
    { bucket_config: { mount_path: '/data', read_only: false } },
    { network: { presets: ['everything'] } },
    { network: { rules: [{ action: 'allow', host: 'https://pypi.org' }] } },
  ];
  for (const given of bad) expect(createSandboxSchema.safeParse(settings(given)).success, JSON.stringify(given)).toBe(false);
  expect(() => request({ block_network: true, network: {} })).toThrow(/mutually exclusive/);
});

test('what is stored has the names of variables, not their values', () => {
  const { stored, spec } = request({ env: { TOKEN: 'secret' }, sidecars: [{ name: 'db', image: 'redis:7', env: { PASSWORD: 'hidden' } }] });
  expect(spec).toMatchObject({
    variables: { TOKEN: 'secret' },
    sidecars: [{ variables: { PASSWORD: 'hidden' } }],
    network: { kind: 'open' },
  });
  expect(stored).toMatchObject({ env: ['TOKEN'], sidecars: [{ name: 'db', env: ['PASSWORD'] }] });
  expect(JSON.stringify(stored)).not.toMatch(/secret|hidden/);
});

test('a rule that HTTPS hides is refused, except for hosts of plain HTTP, and in a policy that only reports', () => {
  const policy = (host: string, given: object = {}) =>
    networkPolicySchema.parse({ rules: [{ action: 'allow', host, path: '/simple/*', methods: ['GET'] }], ...given });
  expect(() => policyOf(policy('pypi.org'), [])).toThrow(expect.objectContaining({ code: 'hosting_unsupported' }));
  expect(policyOf(policy('mirror.internal'), ['mirror.internal'])).toMatchObject({ kind: 'policy', enforce: true });
  expect(policyOf(policy('pypi.org', { enforce: false, presets: ['npm'] }), [])).toMatchObject({ enforce: false });
});

test('sandboxes of a version have another version, which leads back to it', () => {
  const version = '743f39db-102b-45cc-aee8-b6c434aafc5e';
  expect(isSandboxVersion(version)).toBe(false);
  expect(swapSandboxVersion(version)).toBe('743f39db-102b-c5cc-aee8-b6c434aafc5e');
  expect(isSandboxVersion(swapSandboxVersion(version))).toBe(true);
  expect(swapSandboxVersion(swapSandboxVersion(version))).toBe(version);
});
