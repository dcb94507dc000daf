import path from 'node:path';
import { expect, test } from 'vitest';
import { sharedPalestra } from '../support/palestra.ts';
import { pythonFolder, python, run } from './support/python.ts';

/** A program that knows only OPENREWARD_URL asks `api.` and `sessions.` of that host, as tool bridges of harnesses do. */
test.each(['v112', 'v167'] as const)('the official client (%s) with one URL plays and uploads', async (interpreter) => {
  const palestra = await sharedPalestra();
  const args = [path.join(pythonFolder, 'host_names.py'), new URL(palestra.url).port];
  const finished = await run(python(interpreter), args, { env: { OPENREWARD_API_KEY: palestra.apiKey } });
  expect(finished.code, finished.output).toBe(0);
  const seen = JSON.parse(finished.stdout.trimEnd().split('\n').at(-1)!) as { asked: string[]; reward: number; rollout: string };
  expect(seen).toMatchObject({ asked: ['api.localhost', 'sessions.localhost'], reward: 0.1 });
  const headers = { 'x-api-key': palestra.apiKey };
  const stored = await fetch(`${palestra.url}/v1/rollouts/${seen.rollout}`, { headers });
  expect([stored.status, (await stored.json()) as object]).toMatchObject([200, { messages: [{ content: 'hello', reward: 0.1 }] }]);
});
