import { hostingSettingsSchema } from '@palestra/protocol/schemas';
import { expect, test } from 'vitest';
import { formOf, settingsOf } from './settings-form.ts';

const settings = hostingSettingsSchema.parse({
  max: 8,
  egress: ['pypi.org', '*.acme.example'],
  isolation: 'container',
  variables: { A: 'x=y', B: '2' },
});

test('a form that nobody changed gives the same settings', () => {
  expect(settingsOf(formOf(settings), settings)).toEqual({ ...settings, provider: null });
  const lines = { ...settings, variables: { CERTIFICATE: 'one\ntwo' } };
  expect(settingsOf(formOf(lines), lines).variables).toEqual(lines.variables);
});

test('texts become settings', () => {
  const form = { ...formOf(settings), cpus: '0.5', egress: 'none' as const, isolation: '', variables: 'C = 3\n\n D=' };
  expect(settingsOf(form, settings)).toMatchObject({ cpus: 0.5, egress: 'none', isolation: null, variables: { C: ' 3', D: '' } });
  expect(settingsOf({ ...form, egress: 'hosts', hosts: ' a.example\nb.example, ' }, settings).egress).toEqual(['a.example', 'b.example']);
  expect(() => settingsOf({ ...form, variables: 'nothing' }, settings)).toThrow('“nothing” is not a variable');
});
