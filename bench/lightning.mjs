// The gateway of agent-lightning 1.0, which keeps everything in memory, against durable ingest here, on the gateway's workload: rollouts
// of a training step with model requests of 1 kB and a reward. The gateway takes one event per post (as its agents, proxy and trainer
// send them); Palestra takes a hundred. One event per post is a separate row. Alternating, with the same generator.
// PALESTRA_BENCH_LIGHTNING_PYTHON: an interpreter of Python >= 3.12 with `pip install 'agentlightning>=1'`.
import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { BATCH_SIZE, EVENT_BYTES, words } from './support/events.mjs';
import { drain, openClient } from './support/client.mjs';
import { apiKey, freePort, root, startServer } from './support/processes.mjs';
import { median } from './support/figures.mjs';
import { settled } from './support/store.mjs';

const WORKERS = 16;
const ROUNDS = 5;
const REQUESTS = 9;
/** Events of a rollout: model requests and the reward. */
const EVENTS = REQUESTS + 1;
const STEP = 100;
const OURS_AT_ONCE = 600;
const RUN = 'lightning';
const MODEL = 'Qwen/Qwen2.5-7B-Instruct';

/** 1 kB of the record that its proxy makes of a call (agentlightning/server/proxy.py, `_capture_event`). */
function modelRequest(seed) {
  const event = (text) => ({
    event_type: 'model_request',
    data: {
      model: MODEL,
      model_version: 1,
      request: { model: MODEL, messages: [{ role: 'user', content: text }], temperature: 1, return_token_ids: true, logprobs: true },
      response: {
        choices: [
          { index: 0, finish_reason: 'stop', message: { role: 'assistant', content: '<answer>4</answer>' }, token_ids: [1, 2, 3, 4] },
        ],
      },
      server: { model: MODEL, endpoint: 'http://127.0.0.1:8000/v1', version: 1 },
      latency_ms: 812.5,
      http_status: 200,
      status: 'ok',
      retry_count: 0,
      usage: { prompt_tokens: 120, completion_tokens: 4, total_tokens: 124 },
      finish_reason: 'stop',
    },
  });
  return event(words(seed, EVENT_BYTES - JSON.stringify(event('')).length));
}
const REWARD = { event_type: 'reward', data: { value: 1, source: 'agent', reason: 'exact match' } };

/** The rollouts of one step as data: ids and events. */
const makeStep = (size, from) =>
  Array.from({ length: size }, (_, at) => ({
    id: randomUUID(),
    number: from + at,
    events: [...Array.from({ length: REQUESTS }, (__, call) => modelRequest((from + at) * EVENTS + call)), REWARD],
  }));

/** The events of a rollout in Palestra's format: its start, each call's record as a message, the reward on the last. */
function uploads({ id, number, events }) {
  const start = {
    eventType: 'rollout',
    eventId: id,
    timestamp: Date.now(),
    runName: RUN,
    rolloutName: `rollout-${number}`,
    environment: 'acme/math',
  };
  const messages = events.map((event, index) => ({
    eventType: 'message',
    eventId: randomUUID(),
    timestamp: Date.now(),
    index,
    rolloutEventId: id,
    type: index < REQUESTS ? 'assistant_message' : 'tool_result',
    content: JSON.stringify(event.data),
    reward: index < REQUESTS ? undefined : event.data.value,
    isFinished: index === REQUESTS,
    metadata: {},
  }));
  return [start, ...messages];
}

async function startGateway(python) {
  const port = await freePort();
  const folder = mkdtempSync(path.join(tmpdir(), 'palestra-bench-lightning-'));
  const settings = ['host=127.0.0.1', `port=${port}`, `key=${apiKey}`, `hydra.run.dir=${folder}`, 'hydra.output_subdir=null'];
  const server = await startServer(python, ['-m', 'agentlightning.server', ...settings], { HYDRA_FULL_ERROR: '1' }, port, '/healthz');
  const stop = async () => {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  return { ...server, stop };
}

/**
 * Events per second of a step: its rollouts are created in one post, as its trainer does, then each agent posts one event after the
 * other.
 */
async function gatewayRate(gateway, step) {
  const rollouts = JSON.stringify(step.map(({ id, number }) => ({ rollout_id: id, input: { data_id: `task ${number}` } })));
  const agents = step.map(({ id, events }) => ({
    path: `/api/rollouts/${id}/attempt/0/events`,
    bodies: events.map((event) => JSON.stringify(event)),
  }));
  const started = performance.now();
  await gateway.send('/api/rollouts', rollouts);
  await drain(agents, WORKERS, async ({ path: to, bodies }) => {
    for (const body of bodies) await gateway.send(to, body);
  });
  return (step.length * EVENTS) / ((performance.now() - started) / 1000);
}

/** The same here in full posts. Start events do not count. */
async function batchedRate(palestra, step) {
  const events = step.flatMap(uploads);
  const bodies = [];
  for (let from = 0; from < events.length; from += BATCH_SIZE)
    bodies.push(JSON.stringify({ events: events.slice(from, from + BATCH_SIZE) }));
  return (step.length * EVENTS) / (await drain(bodies, WORKERS, (body) => palestra.send('/v1/rollouts', body)));
}

/** The same here like the gateway: rollouts in one post, then one event per post. */
async function singleRate(palestra, step) {
  const rollouts = step.map(uploads);
  const bodiesOf = ([, ...messages]) => messages.map((event) => JSON.stringify({ events: [event] }));
  const starts = JSON.stringify({ events: rollouts.map(([start]) => start) });
  const agents = rollouts.map(bodiesOf);
  const started = performance.now();
  await palestra.send('/v1/rollouts', starts);
  await drain(agents, WORKERS, async (bodies) => {
    for (const body of bodies) await palestra.send('/v1/rollouts', body);
  });
  return (step.length * EVENTS) / ((performance.now() - started) / 1000);
}

export async function benchLightning(palestra) {
  const python = process.env.PALESTRA_BENCH_LIGHTNING_PYTHON ?? path.join(root, '.cache/venv-lightning/bin/python');
  if (!existsSync(python)) {
    console.log(
      `agent-lightning was left out: no interpreter at ${python} (PALESTRA_BENCH_LIGHTNING_PYTHON; python3.12 -m venv, pip install 'agentlightning>=1').`,
    );
    return [];
  }
  const gateway = await startGateway(python);
  const theirs = openClient(gateway.url, { authorization: `Bearer ${apiKey}` }, WORKERS);
  const ours = openClient(palestra.url, { 'x-api-key': apiKey }, WORKERS);
  let made = 0;
  const step = (size) => makeStep(size, (made += size));
  let uploaded = 0;
  const rounds = [];
  try {
    await gatewayRate(theirs, step(STEP));
    await batchedRate(ours, step(STEP));
    uploaded += STEP;
    for (let round = 0; round < ROUNDS; round += 1) {
      await settled(ours, RUN, uploaded);
      const gatewayEvents = await gatewayRate(theirs, step(STEP));
      const batched = await batchedRate(ours, step(OURS_AT_ONCE));
      uploaded += OURS_AT_ONCE;
      await settled(ours, RUN, uploaded);
      const single = await singleRate(ours, step(STEP));
      uploaded += STEP;
      rounds.push({ gatewayEvents, batched, single });
    }
  } finally {
    theirs.close();
    ours.close();
    await gateway.stop();
  }
  const row = (name, key, target) => ({
    name,
    ours: median(rounds.map((round) => round[key])),
    theirs: median(rounds.map(({ gatewayEvents }) => gatewayEvents)),
    unit: '/s',
    ratio: median(rounds.map((round) => round[key] / round.gatewayEvents)),
    target,
  });
  return [
    row('events stored per second, each by its own API; agent-lightning 1.0 in memory', 'batched', 5),
    row('the same, one event a post on both sides', 'single', null),
  ];
}
