import type { HostingSettings } from '@palestra/protocol';
import { expect, test } from 'vitest';
import { formOf, settingsOf } from './settings-form.ts';

const settings: HostingSettings = {
  provider: null,
  min_warm: 0,
  max: 8,
  concurrency: 64,
  idle_s: 300,
  drain_s: 3_600,
  start_timeout_s: 120,
  cpus: 1,
  memory_mb: 1_024,
  pids: 512,
  disk_mb: 512,
  gpus: 0,
  isolation: 'container',
  egress: ['pypi.org', '*.acme.example'],
  variables: { A: 'x=y', B: '2' },
};

test('a form that nobody changed gives the same settings', () => {
  expect(settingsOf(formOf(settings), settings)).toEqual(settings);
  const lines = { ...settings, variables: { CERTIFICATE: 'one\ntwo' } };
  expect(settingsOf(formOf(lines), lines).variables).toEqual(lines.variables);
});

test('texts become settings', () => {
  const form = { ...formOf(settings), cpus: '0.5', egress: 'none' as const, isolation: '', variables: 'C = 3\n\n D=' };
  expect(settingsOf(form, settings)).toMatchObject({ cpus: 0.5, egress: 'none', isolation: null, variables: { C: ' 3', D: '' } });
  expect(settingsOf({ ...form, egress: 'hosts', hosts: ' a.example\nb.example, ' }, settings).egress).toEqual(['a.example', 'b.example']);
  expect(() => settingsOf({ ...form, variables: 'nothing' }, settings)).toThrow('“nothing” is not a variable');
});
