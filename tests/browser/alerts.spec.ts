import type { Browser } from 'playwright-core';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { startReceiver, stepEvents } from '../integration/alerts/alerts.world.ts';
import { type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { expectSound, launch, openPage, visit } from './browser.ts';
import { uploadEvents } from './upload.ts';

/** From a chart to an alert, its notice in the pages, and the delivery log of its webhook. */
const RUN = 'watched';
let palestra: SharedPalestra;
let browser: Browser;

beforeAll(async () => {
  [palestra, browser] = await Promise.all([sharedPalestra(), launch()]);
  for (const step of [0, 1, 2]) await uploadEvents(palestra, stepEvents(RUN, { step, failed: step === 1 ? 10 : 0 }));
});

test('an alert is created from a chart with a preview, fires on the pages, and its message is in the delivery log', async () => {
  const receiver = await startReceiver();
  onTestFinished(() => receiver.stop());
  receiver.answer = (_request, response) => response.writeHead(500).end('<b>not now</b>');
  const { page, complaints, close } = await openPage(browser, palestra, { width: 1280, theme: 'light' });

  await visit(page, `${palestra.url}/alerts?tab=webhooks`, 'No webhooks yet');
  await page.getByLabel('Webhook name').fill('on-call');
  await page.getByLabel('URL').fill(receiver.url);
  await page.getByRole('button', { name: 'Add webhook' }).click();
  await page.getByText(/^whsec_/).waitFor();
  await expectSound(page);

  await visit(page, `${palestra.url}/${palestra.namespace}/runs/${RUN}/tools?tool=accuse`, 'How often does it fail?');
  await page.getByRole('button', { name: 'Alert on errors of accuse' }).click();
  const dialog = page.getByRole('dialog', { name: 'New alert' });
  await dialog.getByLabel('Name', { exact: true }).fill('accuse fails');
  await dialog.getByLabel('Percentage').fill('10');
  const preview = dialog.getByRole('region', { name: 'Preview' });
  await preview.getByText('Would have fired once in this run.').waitFor();
  expect(await preview.innerText()).toContain('Tool errors of accuse: 50 % at step 1');
  await dialog.getByRole('combobox', { name: 'Environment', exact: true }).fill('acme/never');
  await preview.getByText('The run has no environment acme/never.').waitFor();
  // The form asks the server for the preview, which refuses it.
  complaints.length = 0;
  await dialog.getByRole('combobox', { name: 'Environment', exact: true }).fill('acme/whodunit');
  await preview.getByText('Tool errors of accuse in acme/whodunit: 50 % at step 1').waitFor();
  await dialog.getByLabel('Webhook').selectOption('on-call');
  await dialog.getByRole('button', { name: 'Create alert' }).click();
  await dialog.waitFor({ state: 'hidden' });

  await uploadEvents(palestra, stepEvents(RUN, { step: 3, failed: 20 }));
  await visit(page, `${palestra.url}/${palestra.namespace}/runs/${RUN}`, 'rollouts');
  await page
    .getByRole('list', { name: 'Firing alerts' })
    .getByText('Tool errors of accuse in acme/whodunit: 100 % at step 3')
    .waitFor({ timeout: 60_000 });
  await page.getByRole('button', { name: 'Alerts, 1 unread' }).click({ timeout: 60_000 });
  await page.getByRole('list', { name: 'Changes of alerts' }).getByText('accuse fails').waitFor();
  await page.getByRole('button', { name: 'Alerts', exact: true }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('list', { name: 'Firing alerts' }).getByRole('link', { name: 'Show the rollouts' }).click();
  await page.waitForURL(/rollouts\?.*q=/);

  await visit(page, `${palestra.url}/alerts?tab=webhooks`, 'Deliveries to on-call');
  const log = page.getByRole('region', { name: 'Deliveries to on-call' });
  const delivery = log.getByRole('listitem').filter({ hasText: 'alert.firing' }).first();
  await delivery.getByText('The receiver answered 500.').first().waitFor({ timeout: 30_000 });
  await delivery.locator('summary').click();
  // The answer is shown as text.
  await delivery.getByText('<b>not now</b>').first().waitFor();
  await expectSound(page);
  receiver.answer = (_request, response) => response.end('ok');
  await delivery.getByRole('button', { name: 'Redeliver' }).click();
  await delivery.getByText('delivered').first().waitFor({ timeout: 30_000 });
  expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
  expect(complaints).toEqual([]);
  await close();
});
