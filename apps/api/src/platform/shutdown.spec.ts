import { expect, it } from 'vitest';
import { ShutdownList } from './shutdown.ts';

it('stops in reverse order and continues after a step that fails or hangs', async () => {
  const list = new ShutdownList();
  const stopped: string[] = [];
  const problems: string[] = [];
  list.push('database', 1000, async () => stopped.push('database'));
  list.push('broken', 1000, async () => Promise.reject(new Error('no')));
  list.push('hanging', 10, () => new Promise(() => {}));
  list.push('server', 1000, async () => stopped.push('server'));
  await list.run((name) => problems.push(name));
  expect(stopped).toEqual(['server', 'database']);
  expect(problems).toEqual(['hanging', 'broken']);
});
