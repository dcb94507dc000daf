/**
 * A child process: `node serve-kit.js FILE HOST PORT [--end-with-input]` serves the environments of a module until SIGTERM, or until its
 * standard input ends. The message `reload` of its parent loads the module again: new sessions use it, open ones keep the old one. It answers
 * `{ reloaded: error text or null }`.
 */
import { serve } from '@palestra/environment-kit';
import { loadEnvironments } from './load-environments.ts';

const [file, host, port, lifetime] = process.argv.slice(2);
if (file === undefined || host === undefined || port === undefined) throw new Error('usage: serve-kit FILE HOST PORT [--end-with-input]');
// The sandbox refuses its weakest level on an address that other machines can reach.
process.env['HOST'] = host;

try {
  const environments = await loadEnvironments(file);
  const server = await serve(environments, { host, port: Number(port) });
  const end = () => void server.close().finally(() => process.exit(0));
  if (lifetime === '--end-with-input') process.stdin.resume().on('end', end).on('error', end);
  process.on('SIGTERM', end).on('SIGINT', end);
  // An unhandled rejection of one session must not end the others.
  process.on('unhandledRejection', (error) => console.error('Unhandled rejection:', error));
  process.on('message', () => {
    void (async () => {
      try {
        server.replace(await loadEnvironments(file));
        process.send!({ reloaded: null });
      } catch (error) {
        process.send!({ reloaded: error instanceof Error ? error.message : String(error) });
      }
    })();
  });
  process.stdout.write(`${JSON.stringify({ ready: true, url: server.url, environments: environments.map(({ name }) => name) })}\n`);
} catch (error) {
  process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  process.exit(1);
}
