import { Readable } from 'node:stream';
import { PalestraApiError, type PalestraClient } from '@palestra/client';
import { DEMO_ENVIRONMENT } from '@palestra/protocol';

/**
 * The demo's own environment. Version 1 is `palestra/ctf`. Version 2 has the same tasks with faults: `decode` answers with an error, and in
 * one task `scan` never answers, so that a call of it times out.
 */

const CALL_TIMEOUT_S = 3;
const TASKS = 20;
const HANGING_TASK = 3;

const README = `# demo-ctf

The environment of the demonstration. It plays like \`palestra/ctf\`. In its second version the tool \`decode\` is broken, so that the
pages of the run \`demo-learner\` have a drop to explain. **Remove** on the page Runs removes it with the runs.
`;

/** Registers version 1 unless it exists. Returns the full name. */
export async function registerEnvironment(client: PalestraClient): Promise<string> {
  const { org } = await client.me();
  const name = `${org.name}/${DEMO_ENVIRONMENT}`;
  try {
    await client.environments.get(name);
  } catch (error) {
    if (!(error instanceof PalestraApiError) || error.code !== 'environment_not_found') throw error;
    await client.environments.add({
      name: DEMO_ENVIRONMENT,
      description: 'The environment of the demonstration: capture the flag, with a second version whose tool decode fails.',
      readme: README,
      server: { kind: 'bundled', name: 'ctf' },
    });
    await client.environments.setSessions(name, { call_timeout_s: CALL_TIMEOUT_S });
  }
  return name;
}

/** Publishes version 2 unless it exists. */
export async function breakEnvironment(client: PalestraClient, name: string): Promise<void> {
  const { version } = await client.environments.get(name);
  if (version !== 1) return;
  const { tasks } = await client.environments.tasks('palestra/ctf', { split: 'train', limit: TASKS });
  const faulty = tasks.map(({ index, task_spec: spec }) => ({
    ...(spec as object),
    faults: { decode: 'error', ...(index === HANGING_TASK && { scan: 'hang' }) },
  }));
  const lines = faulty.map((task) => `${JSON.stringify(task)}\n`).join('');
  await client.taskSets.push(name, [{ split: 'train', format: 'jsonl', name: 'faulty.jsonl', open: () => Readable.from([lines]) }]);
}
