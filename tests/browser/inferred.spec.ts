import { randomUUID } from 'node:crypto';
import type { Browser } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { expectSound, launch, openPage, visit } from './browser.ts';
import { messageEvents, uploadEvents, uploadRollout } from './upload.ts';

/** Pages always show provenance (docs/reference/metrics.md#provenance): inferred steps have their mark on every page of the run. */
let palestra: SharedPalestra;
let browser: Browser;
const runName = 'skyrl-openreward';
const KEYED = 'same key at every step';
const TASKS = 3;

/** As SkyRL uploads: one name for all samples of a task and every epoch, no step. */
async function uploadEpoch(): Promise<string> {
  const samples = Array.from({ length: TASKS * 2 }, (_, i) => ({ id: randomUUID(), task: i % TASKS }));
  const events = samples.flatMap(({ id, task }): object[] => [
    {
      eventType: 'rollout',
      eventId: id,
      timestamp: Date.now(),
      runName,
      rolloutName: `palestra-whodunit-train-${task}`,
      environment: 'palestra/whodunit',
      split: 'train',
      metadata: { stop_reason: 'finished', total_reward: 1, num_turns: 1 },
    },
    ...messageEvents(id, [
      { type: 'tool_call', name: 'accuse', callId: 'd2c4c1c1e8f3', content: '{}' },
      { type: 'tool_result', callId: 'd2c4c1c1e8f3', content: 'Right.', reward: 1, isFinished: true },
    ]),
  ]);
  await uploadEvents(palestra, events);
  return samples[0]!.id;
}

let rollout = '';
beforeAll(async () => {
  [palestra, browser] = await Promise.all([sharedPalestra(), launch()]);
  rollout = await uploadEpoch();
  for (const step of [1, 2])
    await uploadRollout(palestra, {
      runName: KEYED,
      step,
      metadata: { group_id: 'prompt-1' },
      messages: [{ type: 'assistant_message', content: `At step ${step}.`, reward: step / 2 }],
    });
  const settings = { n: 2, batchSize: TASKS };
  const answer = await fetch(`${palestra.url}/v1/runs/${runName}`, {
    method: 'PATCH',
    headers: { 'x-api-key': palestra.apiKey, 'content-type': 'application/json' },
    body: JSON.stringify({ settings }),
  });
  if (!answer.ok) throw new Error(`PATCH: ${answer.status} ${await answer.text()}`);
});
const ofRun = (rest = '', name = runName) => `${palestra.url}/${palestra.namespace}/runs/${encodeURIComponent(name)}${rest}`;

test('inferred steps have their mark in the status, the groups, a group, a task, a tool and a rollout', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, { width: 1920, theme: 'light' });
  await visit(page, ofRun(), 'Latest groups');
  await expect.poll(() => page.locator('header').innerText()).toMatch(/step ~\d/);
  const latest = page.getByRole('table', { name: 'Latest groups' }).getByRole('row');
  await expect.poll(() => latest.nth(1).innerText()).toMatch(/~\d/);
  await latest.nth(1).click();
  await page.locator('[data-figures]').waitFor();
  expect(await page.locator('[data-figures]').innerText()).toMatch(/Step\s+~\d/);
  await expectSound(page);
  await visit(page, ofRun('/groups'), 'pass@1');
  await expect.poll(() => page.getByRole('table', { name: 'Groups' }).getByRole('cell').nth(1).innerText()).toMatch(/^~\d/);
  await visit(page, ofRun('/tools?tool=accuse'), 'How often is it called?');
  const chart = page.getByRole('region', { name: 'How often is it called?' });
  await expect.poll(() => chart.first().innerText()).toContain('~step ');
  await page.getByRole('button', { name: 'Table of How often is it called?' }).click();
  await page.getByRole('columnheader', { name: 'step (inferred)' }).waitFor();
  await visit(page, `${palestra.url}/rollout/${rollout}`, 'Right.');
  await expect.poll(() => page.getByRole('group', { name: 'Same task at other steps' }).innerText()).toMatch(/Step ~\d/);
  expect(complaints).toEqual([]);
  await close();
});

test('of a group key at several steps the overview opens the step that its row shows', async () => {
  const { page, close } = await openPage(browser, palestra, { width: 1280, theme: 'light' });
  await visit(page, ofRun('', KEYED), 'Latest groups');
  await page.getByRole('table', { name: 'Latest groups' }).getByRole('row').filter({ hasText: '.500' }).click();
  await expect.poll(() => page.locator('[data-figures]').innerText()).toMatch(/Step\s+1\s/);
  await expect.poll(() => new URL(page.url()).searchParams.get('at')).toBe('1');
  await close();
});
