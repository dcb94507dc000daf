import { expect, it } from 'vitest';
import { createLogger } from '../platform/telemetry/logger.ts';
import { RunActivity } from './run-activity.service.ts';

it('counts the events of a run once when only the notification of its changes fails, which is repeated', async () => {
  const counted: unknown[] = [];
  const notified: unknown[] = [];
  let isAway = true;
  const query = async (text: string, values: unknown[]) => {
    if (text.includes('ingest_counters')) counted.push(JSON.parse(values[0] as string));
    else if (isAway) throw new Error('the database is away');
    else notified.push(values[0]);
    return { rows: [] };
  };
  const database = { pool: { query }, connectionString: 'postgresql://127.0.0.1:1/none' };
  const activity = new RunActivity(database as never, createLogger('silent'));
  activity.received([7], { accepted: 2, duplicates: 1, conflicts: 0, late: 0, nonfinite: 0 });
  activity.rolled({ id: 'run', org_id: 'org', version: '3', steps: [1] });
  await activity.onApplicationShutdown();
  isAway = false;
  await activity.onApplicationShutdown();
  expect(counted).toEqual([[{ run_seq: 7, accepted: 2, duplicates: 1, conflicts: 0, late: 0, nonfinite: 0 }]]);
  expect(notified).toEqual([[JSON.stringify({ id: 'run', org: 'org', v: '3', steps: [1] })]]);
});
