import { afterAll } from 'vitest';
import { launch } from './browser.ts';

// Files share the browser. What a failed test left open must not go on working beside the next file.
afterAll(async () => {
  const browser = await launch();
  await Promise.all(browser.contexts().map((context) => context.close()));
});
