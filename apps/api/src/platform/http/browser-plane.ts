import { existsSync } from 'node:fs';
import path from 'node:path';
import fastifyStatic from '@fastify/static';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { PalestraError } from '@palestra/protocol';

/** Built by `npm run build`; from `apps/api/{src,dist}/platform/http` it is the same relative path. */
const DASHBOARD = path.resolve(import.meta.dirname, '../../../../dashboard/dist');

/** dashboard.md section 9: nothing from elsewhere, no inline script, Trusted Types. Styles set by script (CSSOM) are no inline styles. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' blob:",
  "connect-src 'self'",
  "font-src 'self'",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ');

const PAGE_HEADERS = {
  'content-security-policy': CONTENT_SECURITY_POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
};

/** Paths that the dashboard's router knows; all else of the origin belongs to the session plane and the API. */
const PAGES = [
  '/',
  '/:org/runs',
  '/:org/runs/*',
  '/rollout/:id',
  '/compare',
  '/exports',
  '/check',
  '/settings',
  '/environments',
  '/environments/*',
  '/keys',
  '/runs',
  '/runs/*',
  '/sessions',
  '/sessions/*',
];

/** Serves the dashboard's files and its one page. */
export async function prepareBrowserPlane(fastify: FastifyInstance): Promise<void> {
  const built = existsSync(path.join(DASHBOARD, 'index.html'));
  await fastify.register(fastifyStatic, {
    root: built ? path.join(DASHBOARD, 'assets') : import.meta.dirname,
    prefix: '/assets/',
    serve: built,
    immutable: true,
    maxAge: '365d',
    index: false,
    decorateReply: true,
    // The policy of a worker's script holds for the worker.
    setHeaders: (reply) => void reply.header('content-security-policy', CONTENT_SECURITY_POLICY),
  });
  const page = async (request: FastifyRequest, reply: FastifyReply) => {
    // No organisation has this name: `/v1/runs/x/y` is a route that there is not.
    if (request.url.startsWith('/v1/')) throw new PalestraError('route_not_found');
    reply.headers({ ...PAGE_HEADERS, 'cache-control': 'no-cache' });
    if (!built) return reply.status(503).type('text/plain').send('The dashboard is not built. Run "npm run build" and start again.');
    return reply.sendFile('index.html', DASHBOARD, { cacheControl: false });
  };
  for (const url of PAGES) fastify.get(url, page);
  // Addresses that the official clients print (openreward-wire.md section 1).
  fastify.get('/settings/api-keys', async (_request, reply) => reply.redirect('/keys', 302));
  const leads = (from: string, to: string) =>
    fastify.get(from, { config: { unlisted: true } }, async (request, reply) => {
      if (!request.headers.accept?.includes('text/html')) throw new PalestraError('route_not_found');
      const { owner, name } = request.params as { owner: string; name: string };
      return reply.redirect(`/environments/${encodeURIComponent(owner)}/${encodeURIComponent(name)}${to}`, 302);
    });
  leads('/:owner/:name', '');
  // Where a server of OpenEnv shows the page on which one plays by hand (openenv-wire.md section 15).
  for (const path of ['', '/', '/web', '/web/']) leads(`/openenv/:owner/:name${path}`, '/play');
  // A page that there is not, typed by hand: the dashboard says so. Everybody else gets the error of the catalogue.
  fastify.get('/*', { config: { unlisted: true } }, async (request, reply) => {
    const typed = request.headers.accept?.includes('text/html') && !request.url.startsWith('/v1/');
    if (!typed || !built) throw Object.assign(new Error('Not Found'), { statusCode: 404 });
    return page(request, reply.status(404));
  });
  fastify.get('/favicon.svg', async (_request, reply) => (built ? reply.sendFile('favicon.svg', DASHBOARD) : reply.status(404).send()));
}
