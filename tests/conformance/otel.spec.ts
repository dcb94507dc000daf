import { beforeAll, describe, expect, test } from 'vitest';
import { type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { runScript } from './support/python.ts';

/** GenAI spans of the official OpenTelemetry SDK and its OTLP/HTTP exporter become rollouts. */
interface Sent {
  solved: string;
  failed: string;
  /** Whether the exporter called each of its requests a success. */
  exports: boolean[];
}

let palestra: SharedPalestra;
beforeAll(async () => {
  palestra = await sharedPalestra();
});

async function read(route: string): Promise<any> {
  const answer = await fetch(palestra.url + route, { headers: { 'x-api-key': palestra.apiKey } });
  expect(answer.status, await answer.clone().text()).toBe(200);
  return answer.json();
}
const send = (compression: string, key = palestra.apiKey) =>
  runScript('v167', 'otel_spans.py', [`${palestra.url}/v1/traces`, key, compression], {}) as Promise<Sent>;

describe.each(['none', 'gzip'])('OpenTelemetry, compression %s', (compression) => {
  test('two traces in several requests are two rollouts', async () => {
    const { solved, failed, exports } = await send(compression);
    expect(exports.length).toBeGreaterThan(1);
    expect(exports).not.toContain(false);

    const listed = async () => (await read(`/v1/runs?search=otel-${compression}`)).runs;
    await expect.poll(listed).toMatchObject([{ name: `otel-${compression}`, num_rollouts: 2 }]);
    const runs = await listed();
    const { rollouts } = await read(`/v1/runs/${runs[0].id}/rollouts`);
    const views = await Promise.all(rollouts.map(({ id }: { id: string }) => read(`/v1/rollouts/${id}`)));
    const byTrace = (id: string) => views.find(({ metadata }) => metadata.trace_id === id);

    const one = byTrace(solved);
    expect(one).toMatchObject({
      rolloutName: 'solver',
      environment: 'acme/adder',
      split: 'train',
      step: 4,
      task_index: 7,
      reward: 1,
      finished: true,
      run_info: { model_name: 'policy-7b' },
      missing_indexes: [],
    });
    // Each message once, although the second model call repeats the conversation and the tool has a span of its own.
    expect(one.messages.map(({ type, content, callId }: any) => [type, content, callId ?? null])).toEqual([
      ['system_message', 'Be brief. ü 你', null],
      ['user_message', '2 + 3?', null],
      ['tool_call', expect.stringMatching(/^\{"a": ?2, ?"b": ?3\}$/), 'call-1'],
      ['tool_result', '5', 'call-1'],
      ['assistant_message', 'It is 5.', null],
      ['system_message', 'reward 1', null],
    ]);
    expect(one.messages[4].metadata).toMatchObject({ model: 'policy-7b', tokens: { prompt: 34, output: 5 } });

    // An episode that broke is no score of 0.
    expect(byTrace(failed)).toMatchObject({
      finished: false,
      reward: null,
      rollout_info: { stop_reason: 'infra_error', error: 'the sandbox died' },
      messages: [{ type: 'system_message' }, { type: 'user_message' }, { type: 'assistant_message', content: 'I think' }],
    });
  });
});

test('a wrong key is refused, and the exporter says that it failed', async () => {
  const { exports } = await send('none', 'or_nobody_has_this_key');
  expect(exports.length).toBeGreaterThan(0);
  expect(exports).not.toContain(true);
});
