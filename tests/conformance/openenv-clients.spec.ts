import path from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { type OpenEnvPython, openEnvPython } from './support/openenv-server.ts';
import { pythonFolder, run } from './support/python.ts';

/** Unmodified OpenEnv clients of every generation on environments of our own. */
let palestra: SharedPalestra;
beforeAll(async () => {
  palestra = await sharedPalestra();
});

async function play(python: OpenEnvPython, script: string): Promise<any> {
  const owner = 'palestra';
  const args = [path.join(pythonFolder, script), palestra.url, owner, palestra.apiKey];
  const finished = await run(openEnvPython(python), args, { timeoutMs: 150_000 });
  if (finished.code !== 0)
    throw new Error(`${script} ended with ${finished.code}:\n${finished.output}\n${palestra.output().slice(-3_000)}`);
  return JSON.parse(finished.stdout.trimEnd().split('\n').at(-1)!);
}

const said = (text: string) => ({
  content: [{ type: 'text', text, annotations: null, meta: null }],
  structured_content: { result: text },
  meta: null,
  data: text,
  is_error: false,
});

describe.each([
  ['0.2.3', 'PALESTRA_PYTHON_OE_0_2_3'],
  ['0.3.0', 'PALESTRA_PYTHON_OE_0_3_0'],
  ['0.4.1', 'PALESTRA_PYTHON_OE_0_4_1'],
  ['0.5.0', 'PALESTRA_PYTHON_OE_0_5_0'],
  ['0.10.0', 'PALESTRA_PYTHON_OE_0_10_0'],
] as const)('clients of %s', (version, python) => {
  test('play with a key in every place, sync and async, with tools and actions', async () => {
    const seen = await play(python, 'openenv_clients.py');
    expect(seen.version).toBe(version);
    const { generic_sync: sync, generic_async: asynchronous, actions } = seen;
    expect(sync.tools).toEqual(['echo']);
    expect(sync.opening).toMatchObject({ observation: { prompt: 'Task 3: call echo with any text.' }, reward: null, done: false });
    expect(sync.steps[0]).toMatchObject({ observation: { tool_name: 'echo', result: said('hi'), error: null }, reward: 0.1, done: false });
    const unknown = { error_type: 'tool_not_found', message: "Unknown tool: 'nope'" };
    expect(sync.steps[1]).toMatchObject({ observation: { tool_name: 'nope', result: null, error: unknown }, reward: null });
    expect(sync.state).toMatchObject({ episode_id: 'ep-sync', step_count: 2, split: 'train', index: 3 });
    expect(sync.again).toContain('Task 7:');
    expect(asynchronous).toMatchObject({ step: { reward: 0.1 }, state: { index: 5, step_count: 2 } });
    expect(asynchronous.errors[0]).toContain('VALIDATION_ERROR');
    expect(asynchronous.errors[1]).toMatchObject({ observation: { result: null, error: { error_type: 'invalid_args' } } });
    expect(actions.opening.observation).toMatchObject({ waited_seconds: 0, step_count: 0 });
    expect(actions.step).toMatchObject({ observation: { step_count: 1, waited_seconds: 0 }, reward: 0, done: false });
    expect(actions.refused).toContain('VALIDATION_ERROR');
    for (const tools of [seen.tools_simulation, seen.tools_production]) {
      expect(tools).toMatchObject({ tools: ['echo'], said: 'said' });
      expect(tools.unknown).toContain("Unknown tool: 'nope'");
    }
    expect(seen.tools_sync).toBe('sync');
    for (const text of seen.refused) expect(text).toContain('401');
    expect(seen.auto).toContain('Task 9:');
    const modern = !['0.2.3', '0.3.0'].includes(version);
    expect(seen.siblings).toEqual(modern ? [1, 2] : null);
    expect(seen.plain_with).toEqual(modern ? 'Task 6: call echo with any text.' : null);
    expect(seen.headers).toEqual(version === '0.10.0' ? { generic: 0.1, mcp: 'by header' } : null);
  });
});

test('the client of 0.1.1 plays virtual containers', async () => {
  const seen = await play('PALESTRA_PYTHON_OE_0_1_1', 'openenv_container_client.py');
  expect(seen.before).toBe(404);
  for (const opening of seen.openings) {
    expect(opening.observation).toMatchObject({ prompt: expect.stringContaining('call echo') as string });
    expect(opening.observation).not.toHaveProperty('metadata');
  }
  expect(seen.steps.map((step: any) => [step.observation.result.data, step.reward])).toEqual([
    ['a', 0.1],
    ['b', 0.1],
    ['c', 0.1],
  ]);
  expect(seen.states.map((state: any) => state.step_count)).toEqual([2, 1]);
  expect(seen.bad[0]).toMatchObject({ observation: { tool_name: 'echo' }, reward: null });
  expect(seen.bad[1]).toMatchObject({ observation: { error: { error_type: 'tool_not_found' } } });
  expect(seen.waits[0]).toMatchObject({ observation: { step_count: 1 }, reward: 0 });
  expect(seen.waits[1]).toMatchObject({ observation: { step_count: 1 }, reward: null });
  expect(seen).toMatchObject({ gone: 200, after: 404, health: { status: 'healthy' } });
  expect(seen.again.observation.prompt).toContain('call echo');
});

test('openenv validate passes 6 of 6 for every bundled environment', async () => {
  const answer = await fetch(`${palestra.url}/v1/environments`, { headers: { 'x-api-key': palestra.apiKey } });
  const listed = (await answer.json()) as { environments: { owner: string; name: string }[] };
  const environments = listed.environments.filter(({ owner }) => owner === 'palestra');
  expect(environments.length).toBeGreaterThan(4);
  const openenv = path.join(path.dirname(openEnvPython('PALESTRA_PYTHON_OE_0_10_0')), 'openenv');
  const reports = environments.map(async ({ owner, name }) => {
    const url = `${palestra.url.replace('//', `//key:${palestra.apiKey}@`)}/openenv/${owner}/${name}`;
    const finished = await run(openenv, ['validate', '--url', url, '--json'], { timeoutMs: 170_000 });
    return { name, ...finished };
  });
  for (const { name, code, output, stdout } of await Promise.all(reports)) {
    expect(code, `${name}: ${output}`).toBe(0);
    const report = JSON.parse(stdout);
    expect(report).toMatchObject({ passed: true, mode: 'simulation', standard_profile: 'openenv-http/1.x' });
    expect(report.summary).toMatchObject({ passed_count: 6, total_count: 6 });
  }
});
