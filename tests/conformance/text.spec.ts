import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { serve } from '@palestra/environment-kit';
import { addRemote, type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { requestText } from './support/text-requests.ts';
import { textEnvironments } from '../support/text-environments.ts';
import { pythonFolder } from './support/python.ts';

/**
 * Text sessions beside SkyRL's own adapters. The golden file was recorded by `text_goldens.py skyrl` from the adapters of NovaSky-AI/SkyRL a9564572
 * (2026-08-21), its OpenRewardEnv on our ORS plane, its OpenEnv on clients of OpenEnv b21f034d.
 */
const golden = path.join(pythonFolder, 'text_goldens.json');

interface Step {
  observations: { role: string; content: string }[];
  reward: number;
  done: boolean;
  metadata: object;
}
interface Played {
  name: string;
  errors: (string | null)[] | null;
  init: [object, object];
  steps: Step[];
  metrics: object | null;
}
interface Episode {
  name: string;
  parse: 'tool_call' | 'action';
  variant: string;
  max_turns: number;
  texts: string[];
}
const episodes = JSON.parse(readFileSync(path.join(pythonFolder, 'text_episodes.json'), 'utf8')) as Episode[];

let palestra: SharedPalestra;
let running: Awaited<ReturnType<typeof serve>>;
let environment: string;

beforeAll(async () => {
  running = await serve(textEnvironments);
  palestra = await sharedPalestra();
  environment = await addRemote(palestra, 'texts', running.url);
});
afterAll(async () => {
  await running?.close();
});

async function request(method: string, where: string, body?: object) {
  const { status, body: parsed } = await requestText(palestra, method, where, body);
  if (status >= 400) throw new Error(`${method} ${where}: ${status} ${JSON.stringify(parsed)}`);
  return parsed;
}

async function play({ parse, variant, max_turns: maxTurns, texts }: Omit<Episode, 'name'>): Promise<Omit<Played, 'name' | 'errors'>> {
  const prompt = JSON.stringify([{ role: 'user', content: 'go' }]);
  const opened = await request('POST', '', { environment, variant, split: 'train', index: 0, parse, max_turns: maxTurns, prompt });
  const steps: Step[] = [];
  for (const [index, text] of texts.entries()) {
    const { turn, metadata, ...step } = await request('POST', `/${opened.id}/step`, { text });
    expect(turn).toBe(index + 1);
    const { env_class: _class, action: _action, failure_class: _failure, ...rest } = metadata;
    steps.push({ ...step, metadata: rest });
  }
  const metrics = await request('GET', `/${opened.id}/metrics`);
  await request('DELETE', `/${opened.id}`);
  return { init: [opened.prompt, opened.metadata], steps, metrics: parse === 'tool_call' ? metrics : null };
}

const recorded = (): Played[] => JSON.parse(readFileSync(golden, 'utf8')) as Played[];

describe('as the adapters of SkyRL were recorded', () => {
  test('every episode is among them', () => {
    expect(recorded().map(({ name }) => name)).toEqual(episodes.map(({ name }) => name));
  });

  test.each(episodes)('$name', async ({ name, ...episode }) => {
    const { errors, name: _name, ...expected } = recorded().find((one) => one.name === name)!;
    expect(await play(episode)).toEqual(expected);
    // What the model is told of an action that fails, where theirs dies of an UnboundLocalError.
    for (const [index, error] of (errors ?? []).entries()) {
      if (error === null) continue;
      const { steps } = await play({ ...episode, max_turns: 5, texts: [episode.texts[index]!] });
      expect(steps).toMatchObject([{ observations: [{ role: 'user', content: error }], reward: -1, done: false }]);
    }
  });
});
