import fastify from 'fastify';
import { expect, it } from 'vitest';
import { PalestraError } from '@palestra/protocol';
import { prepareFastify } from './fastify.ts';
import { RouteTable } from './route-table.ts';

it('answers shutting_down while it closes', async () => {
  const app = fastify({ return503OnClosing: false });
  prepareFastify(app, { routes: new RouteTable(), origin: { url: '' }, authenticate: async () => null });
  app.setErrorHandler((error, _request, reply) => reply.status((error as PalestraError).status).send((error as PalestraError).toBody()));
  app.get('/x', async () => ({ fine: true }));
  const url = await app.listen({ port: 0, host: '127.0.0.1' });
  const seen: unknown[] = [];
  expect(await (await fetch(`${url}/x`)).json()).toEqual({ fine: true });
  let close: Promise<void> | undefined;
  await new Promise<void>((resolve) => {
    app.server.once('close', resolve);
    const original = app.server.close.bind(app.server);
    app.server.close = (callback) => {
      // Between the first hook of the shutdown and the end of listening.
      void fetch(`${url}/x`)
        .then(async (answer) => seen.push(answer.status, await answer.json()))
        .finally(() => original(callback));
      return app.server;
    };
    close = app.close();
  });
  await close;
  expect(seen).toMatchObject([503, { code: 'shutting_down' }]);
});
