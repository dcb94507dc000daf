import { parseJson } from '@palestra/protocol';
import { expect, test } from 'vitest';
import { readSeed } from './nemo-gym-task.ts';

const address = { owner: 'palestra', name: 'whodunit', run: 'mine', operation: 'seed_session' };
const facts = { env_name: 'palestra/whodunit', env_version: 2, split: 'train', task_index: 4, task_key: 'k', variant: 'v' };
const read = (body: object, at: Partial<typeof address> | { run: null } = {}) =>
  readSeed(parseJson(JSON.stringify(body)), { ...address, ...at });

test('the row of an agent', () => {
  const seed = read({
    responses_create_params: { input: [] },
    verifier_metadata: { palestra: facts },
    _ng_task_index: 7,
    _ng_rollout_index: 1,
  });
  expect(seed).toMatchObject({ sessionId: null, variant: 'v', split: 'train', index: 4 });
  expect(seed.recording).toMatchObject({
    run: 'mine',
    name: null,
    step: null,
    split: 'train',
    taskIndex: 4,
    metadata: { group_id: '7', sample_idx: 1, task_key: 'k', env_version: 2 },
  });
});

test('the request of an environment server', () => {
  const seed = read({
    resources_session_id: 'resources-session-1',
    episode_id: { rollout_id: '7-3', attempt: 1 },
    task_id: { taskset: 't', task_id: '7' },
    task_data: { palestra: facts },
  });
  expect(seed.sessionId).toBe('resources-session-1');
  expect(seed.recording).toMatchObject({ name: '7-3', metadata: { group_id: '7', sample_idx: 3 } });
});

test('without a run nothing is recorded, and the version of the address does not count', () => {
  expect(read({ palestra: facts }, { run: null }).recording).toBeNull();
  expect(read({ ...facts }, { name: 'whodunit@2' }).index).toBe(4);
});

test.each([
  ['no task', {}],
  ['no object', []],
  ['a task without a split', { palestra: { task_index: 1 } }],
  ['an index that is no number', { palestra: { split: 'train', task_index: '1' } }],
  ['a fraction', { palestra: { split: 'train', task_index: 1.5 } }],
  ['another environment', { palestra: { ...facts, env_name: 'palestra/math' } }],
])('refuses %s', (_name, body) => {
  expect(() => read(body)).toThrow(expect.objectContaining({ code: 'invalid_request' }));
});
