import { parquetReadObjects } from 'hyparquet';
import { expect, test } from 'vitest';
import { curriculumFile, type CurriculumTask } from '../index.ts';
import { arrayBufferOf, bytesOf, compressors, each } from './rollout-files.fixture.ts';

test('a curriculum has the columns of prepare_tasks, then how often it was solved', async () => {
  const task: CurriculumTask = {
    prompt: [{ role: 'user', content: 'é' }],
    env_name: 'a/b',
    split: 'train',
    task_index: 3,
    solve_rate: 0.25,
    n: 8,
  };
  const rows = await parquetReadObjects({ file: arrayBufferOf(await bytesOf(curriculumFile(each([task])))), compressors });
  expect(Object.entries(rows[0]!)).toEqual([
    ['prompt', '[{"role": "user", "content": "\\u00e9"}]'],
    ['env_class', 'openreward'],
    ['env_name', 'a/b'],
    ['split', 'train'],
    ['task_index', 3n],
    ['solve_rate', 0.25],
    ['n', 8n],
  ]);
});
