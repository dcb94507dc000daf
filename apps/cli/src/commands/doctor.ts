import { describeError } from '../error-text.ts';
import { printable } from '../output.ts';
import { withClient } from '../settings.ts';

const CODING_ENV = 'palestra/coding_env';

/** Checks the server, the key and isolation, one line each. Exit status 1 if a check fails. */
export async function doctor(): Promise<void> {
  await withClient(async (client) => {
    const check = async (name: string, run: () => Promise<string>): Promise<boolean> => {
      const [mark, text] = await run().then(
        (detail) => ['ok', detail],
        (error: unknown) => ['FAIL', describeError(error)],
      );
      process.stdout.write(`${mark!.padEnd(5)} ${name.padEnd(12)} ${printable(text!)}\n`);
      if (mark === 'FAIL') process.exitCode = 1;
      return mark === 'ok';
    };
    const isKnown = await check('server, key', async () => {
      const { org, user } = await client.me();
      return `${client.url} knows the key: ${user.name} of ${org.name}`;
    });
    if (!isKnown) return;
    await check('environments', async () => `${(await client.environments.list()).total} are visible`);
    await check('isolation', async () => {
      const { status, status_detail } = await client.environments.get(CODING_ENV);
      if (status !== 'ready' || /Isolation: none|Sessions are refused/.test(status_detail ?? '')) throw new Error(status_detail ?? status);
      return `of what a model writes, in ${CODING_ENV}: ${status_detail}`;
    });
  });
}
