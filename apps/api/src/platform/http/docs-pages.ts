import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import fastifyStatic from '@fastify/static';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { contentSecurityPolicy, PAGE_HEADERS } from './dashboard-pages.ts';

/** The folder of the built documentation site; null before `npm run build`. */
function findSite(): string | null {
  try {
    return path.dirname(createRequire(import.meta.url).resolve('@palestra/docs/index.html'));
  } catch {
    return null;
  }
}

/** The sources of the inline scripts of a page, for its Content-Security-Policy. VitePress writes the same ones to every page. */
function inlineScripts(html: string): string[] {
  return [...html.matchAll(/<script(?![^>]*\ssrc=)[^>]*>([^]*?)<\/script>/g)].map(
    ([, code]) => `'sha256-${createHash('sha256').update(code!).digest('base64')}'`,
  );
}

/** Serves the documentation site at `/docs`, without authentication. */
export async function serveDocs(fastify: FastifyInstance): Promise<void> {
  const site = findSite();
  if (site === null) {
    const refuse = async (_request: FastifyRequest, reply: FastifyReply) =>
      reply.status(503).type('text/plain').send('The documentation is not built. Run "npm run build" and start again.');
    for (const url of ['/docs', '/docs/*']) fastify.get(url, refuse);
    return;
  }
  const scripts = inlineScripts(readFileSync(path.join(site, 'index.html'), 'utf8'));
  // The style sheet of VitePress has its icons as data: URLs.
  const headers = { ...PAGE_HEADERS, 'content-security-policy': contentSecurityPolicy(scripts, 'data:') };
  const redirect = async (_request: FastifyRequest, reply: FastifyReply) => reply.redirect('/docs/', 302);
  fastify.route({ method: ['GET', 'HEAD'], url: '/docs', handler: redirect });
  await fastify.register(
    async (docs) => {
      await docs.register(fastifyStatic, {
        root: site,
        prefix: '/',
        decorateReply: false,
        extensions: ['html'],
        cacheControl: false,
        setHeaders(reply, file) {
          const isHashed = file.startsWith(path.join(site, 'assets') + path.sep);
          for (const [name, value] of Object.entries(headers)) reply.header(name, value);
          reply.header('cache-control', isHashed ? 'public, max-age=31536000, immutable' : 'no-cache');
        },
      });
      const missing = readFileSync(path.join(site, '404.html'));
      docs.setNotFoundHandler(async (_request, reply) =>
        reply
          .status(404)
          .headers({ ...headers, 'cache-control': 'no-cache' })
          .type('text/html; charset=utf-8')
          .send(missing),
      );
    },
    { prefix: '/docs' },
  );
}
