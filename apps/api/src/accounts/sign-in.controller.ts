import { createHash } from 'node:crypto';
import { Body, Controller, Get, Inject, Post, Query, Req, Res } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { PalestraError } from '@palestra/protocol';
import { signInBodySchema } from '@palestra/protocol/schemas';
import { Api } from '../platform/http/api.decorator.ts';
import { PUBLIC_ORIGIN, type PublicOrigin } from '../platform/tokens.ts';
import { AccountService, BROWSER_SESSION_MS } from './account.service.ts';
import { sourceOf } from './audit/request-source.ts';
import { Authenticator, isFromOwnPage, sessionCookieName } from './authenticator.ts';
import { UnauthenticatedRateLimit } from '../platform/http/unauthenticated-rate-limit.ts';
import { Public } from '../platform/http/public.decorator.ts';
import { cookieOf } from './cookies.ts';
import { CredentialWatch } from './credential-watch.ts';

const okSchema = z.object({ ok: z.literal(true) });

const STYLE = 'body{font:16px system-ui;margin:20vh auto;max-width:24em;padding:0 1em}button{font:inherit;padding:.5em 1em}';
/** In place of the headers that every answer has: this page has one style, and one form that goes to this origin. */
const CONFIRM_HEADERS = {
  'content-security-policy': `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; form-action 'self'; frame-ancestors 'none'`,
  'cache-control': 'no-store',
};
const confirmPage = (token: string) => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Sign in to Palestra</title>
<style>${STYLE}</style>
<h1>Sign in to Palestra</h1>
<p>This signs the browser in. The link works once.</p>
<form method="post" action="/login">
<input type="hidden" name="token" value="${encodeURIComponent(token)}">
<button>Sign in</button>
</form>
`;

/** A page of another site must not sign its visitor in as somebody else (login CSRF). Programs send neither of the two headers. */
function assertOwnForm({ headers }: FastifyRequest): void {
  const isBrowser = headers['sec-fetch-site'] !== undefined || headers.origin !== undefined;
  if (isBrowser && !isFromOwnPage(headers)) throw new PalestraError('forbidden', { detail: 'Sign in from a page of Palestra itself.' });
}

/** Browsers get a cookie, by the link that the terminal printed or by pasting an API key. */
@Controller()
export class SignInController {
  constructor(
    private readonly accounts: AccountService,
    private readonly authenticator: Authenticator,
    private readonly watch: CredentialWatch,
    private readonly rates: UnauthenticatedRateLimit,
    @Inject(PUBLIC_ORIGIN) private readonly origin: PublicOrigin,
  ) {}

  /** Asks before it signs in: a link preview, or a page of another site that opens the link, must not use it. */
  @Get('login')
  @Public()
  async confirmLink(@Query('token') token: string | undefined, @Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    const known = token !== undefined && (await this.accounts.knowsSignInToken(token));
    if (!known && token !== undefined) await this.rates.countFailure(request.raw);
    // A used link is no error for a person who is signed in already; the page at "/" says what to do for others.
    if (!known) await reply.redirect('/', 303);
    else await reply.headers(CONFIRM_HEADERS).type('text/html; charset=utf-8').send(confirmPage(token));
  }

  @Post('login')
  @Public()
  @RouteConfig({ rawBody: true })
  async byLink(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    assertOwnForm(request);
    const form = new URLSearchParams((request.body as Buffer | undefined)?.toString('utf8'));
    const cookie = await this.accounts.redeemSignInToken(form.get('token') ?? '', sourceOf(request));
    if (!cookie) await this.rates.countFailure(request.raw);
    if (cookie) reply.header('set-cookie', this.#cookie(cookie, BROWSER_SESSION_MS / 1000));
    await reply.redirect('/', 303);
  }

  @Post('v1/login')
  @Public()
  @Api({ summary: 'Sign a browser in with an API key', body: signInBodySchema, response: okSchema, errors: ['rate_limited'] })
  async byKey(
    @Body({ schema: signInBodySchema }) body: z.infer<typeof signInBodySchema>,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    assertOwnForm(request);
    const key = body.key.trim();
    const caller = await this.authenticator.ofKey(key, request.raw).catch(async (error: unknown) => {
      if (error instanceof PalestraError && error.status === 401) await this.accounts.recordRefusedKey(key, error.code, sourceOf(request));
      throw error;
    });
    const cookie = await this.accounts.openBrowserSession(caller, sourceOf(request));
    reply.header('set-cookie', this.#cookie(cookie, BROWSER_SESSION_MS / 1000));
    return { ok: true };
  }

  @Post('v1/logout')
  @Public()
  @Api({ summary: 'Sign the browser out', response: okSchema })
  async logout(@Req() request: FastifyRequest, @Res({ passthrough: true }) reply: FastifyReply) {
    const token = this.authenticator.sessionToken(request.headers);
    if (token) await this.accounts.closeBrowserSession(token, sourceOf(request));
    this.authenticator.forget();
    await this.watch.check();
    reply.header('set-cookie', this.#cookie('', 0));
    return { ok: true };
  }

  #cookie(value: string, maxAgeSeconds: number): string {
    return cookieOf(sessionCookieName(this.origin.url), value, maxAgeSeconds, this.origin.url);
  }
}
