import type { Capabilities } from '@palestra/hosting';
import { hostingSettingsSchema } from '@palestra/protocol/schemas';
import { expect, test } from 'vitest';
import { assertSupported, defaultSettings, isolationOf } from './supported-settings.ts';

const docker: Capabilities = {
  isolation: ['container', 'sandbox'],
  egress: ['open', 'none'],
  gpus: false,
  limits: true,
  maxMemoryMb: 8_000,
  builds: true,
};
const processes: Capabilities = { isolation: ['none'], egress: ['open'], gpus: false, limits: false, maxMemoryMb: null, builds: true };
const settings = hostingSettingsSchema.parse;

test('names every setting that the engine cannot enforce', () => {
  expect(() => assertSupported(settings({}), 'docker', docker)).not.toThrow();
  const much = settings({ egress: ['pypi.org'], isolation: 'vm', gpus: 1, memory_mb: 9_000 });
  expect(() => assertSupported(much, 'docker', docker)).toThrow(
    expect.objectContaining({
      code: 'hosting_unsupported',
      message:
        'The engine "docker" of this server cannot enforce these settings: egress a list of hosts (it has "open", "none"); ' +
        'isolation "vm" (it has container, sandbox); gpus 1 (it has none); memory_mb 9000 (it has 8000).',
    }),
  );
});

test('an engine without limits refuses those that were chosen, and an environment without settings gets what it has', () => {
  expect(() => assertSupported(settings({}), 'process', processes)).toThrow(/egress "none" \(it has "open"\)/);
  expect(() => assertSupported(defaultSettings(processes), 'process', processes)).not.toThrow();
  expect(() => assertSupported(settings({ egress: 'open', memory_mb: 100 }), 'process', processes)).toThrow(/memory_mb 100/);
  expect(defaultSettings(docker).egress).toBe('none');
});

test('an engine may enforce all limits but one', () => {
  const cluster: Capabilities = { ...docker, unlimited: ['pids'] };
  expect(() => assertSupported(settings({ memory_mb: 100 }), 'kubernetes', cluster)).not.toThrow();
  expect(() => assertSupported(settings({ pids: 100 }), 'kubernetes', cluster)).toThrow(/pids 100 \(it has no such limit\)/);
});

test('takes the weakest isolation that suffices', () => {
  expect(isolationOf(settings({}), docker)).toBe('container');
  expect(isolationOf(settings({ isolation: 'sandbox' }), docker)).toBe('sandbox');
  expect(isolationOf(settings({ isolation: 'container' }), processes)).toBeNull();
});
