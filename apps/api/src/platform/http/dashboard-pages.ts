import { createRequire } from 'node:module';
import path from 'node:path';
import fastifyStatic from '@fastify/static';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { PalestraError } from '@palestra/protocol';

/**
 * Nothing from other origins, no inline script, Trusted Types. Styles that scripts set through the CSSOM are not inline styles. The
 * arguments are sources that are permitted besides.
 */
export const contentSecurityPolicy = (scripts: string[], images: string): string =>
  [
    "default-src 'none'",
    ["script-src 'self'", ...scripts].join(' '),
    "style-src 'self'",
    `img-src 'self' ${images}`,
    "connect-src 'self'",
    "font-src 'self'",
    "worker-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
  ].join('; ');
const CONTENT_SECURITY_POLICY = contentSecurityPolicy([], 'blob:');

export const PAGE_HEADERS = {
  'content-security-policy': CONTENT_SECURITY_POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
};

/** Paths of the dashboard's router. All others belong to the session API and the API. */
const PAGES = [
  '/',
  '/:org/runs',
  '/:org/runs/*',
  '/rollout/:id',
  '/compare',
  '/reviews',
  '/reviews/*',
  '/exports',
  '/alerts',
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

/** The folder of the built dashboard; null before `npm run build`. */
function findDashboard(): string | null {
  try {
    return path.dirname(createRequire(import.meta.url).resolve('@palestra/dashboard/index.html'));
  } catch {
    return null;
  }
}

/** Serves the dashboard's files and its one page. */
export async function serveDashboard(fastify: FastifyInstance): Promise<void> {
  const dashboard = findDashboard();
  await fastify.register(fastifyStatic, {
    root: dashboard ? path.join(dashboard, 'assets') : import.meta.dirname,
    prefix: '/assets/',
    serve: dashboard !== null,
    immutable: true,
    maxAge: '365d',
    index: false,
    decorateReply: true,
    // A worker's script needs the policy for the worker.
    setHeaders: (reply) => void reply.header('content-security-policy', CONTENT_SECURITY_POLICY),
  });
  const page = async (request: FastifyRequest, reply: FastifyReply) => {
    // `v1` is not an organisation: `/v1/runs/x/y` is an unknown route.
    if (request.url.startsWith('/v1/')) throw new PalestraError('route_not_found');
    reply.headers({ ...PAGE_HEADERS, 'cache-control': 'no-cache' });
    if (dashboard === null)
      return reply.status(503).type('text/plain').send('The dashboard is not built. Run "npm run build" and start again.');
    return reply.sendFile('index.html', dashboard, { cacheControl: false });
  };
  for (const url of PAGES) fastify.get(url, page);
  // Addresses that the official clients print (docs/reference/ors.md#addresses).
  fastify.get('/settings/api-keys', async (_request, reply) => reply.redirect('/keys', 302));
  const redirect = (from: string, to: string) =>
    fastify.get(from, { config: { unlisted: true } }, async (request, reply) => {
      if (!request.headers.accept?.includes('text/html')) throw new PalestraError('route_not_found');
      const { owner, name } = request.params as { owner: string; name: string };
      return reply.redirect(`/environments/${encodeURIComponent(owner)}/${encodeURIComponent(name)}${to}`, 302);
    });
  redirect('/:owner/:name', '');
  // Where an OpenEnv server has its page for playing by hand (docs/reference/openenv.md#web-page).
  for (const path of ['', '/', '/web', '/web/']) redirect(`/openenv/:owner/:name${path}`, '/play');
  // For an unknown address that a user typed the dashboard shows an error page. Other clients get the error of the catalogue.
  fastify.get('/*', { config: { unlisted: true } }, async (request, reply) => {
    const typed = request.headers.accept?.includes('text/html') && !request.url.startsWith('/v1/');
    if (!typed || dashboard === null) throw Object.assign(new Error('Not Found'), { statusCode: 404 });
    return page(request, reply.status(404));
  });
  fastify.get('/favicon.svg', async (_request, reply) => (dashboard ? reply.sendFile('favicon.svg', dashboard) : reply.status(404).send()));
}
