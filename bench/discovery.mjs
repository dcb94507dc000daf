// create_session and delete_session one after the other, with which every list_tasks of the SDK starts and ends.
import { apiKey } from './support/processes.mjs';
import { median } from './support/figures.mjs';

const ROUNDS = 1000;

export async function benchDiscovery(palestra) {
  const headers = { 'x-api-key': apiKey, 'x-deployment': 'palestra/echo', 'content-type': 'application/json' };
  const post = async (route, more = {}) => {
    const answer = await fetch(palestra.url + route, { method: 'POST', headers: { ...headers, ...more }, body: '{}' });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${route}: ${answer.status} ${text}`);
    return text;
  };
  const times = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const started = performance.now();
    const sid = /event: task_id\r?\ndata: (\S+)/.exec(await post('/create_session'))[1];
    await post('/delete_session', { 'x-session-id': sid });
    times.push(performance.now() - started);
  }
  const p50 = median(times.slice(ROUNDS / 10));
  return [{ name: 'discovery session, created and deleted, p50', ours: p50, unit: 'ms', most: { value: p50, limit: 2, unit: 'ms' } }];
}
