import { Body, Controller, Get, Inject, Post, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { Api } from '../platform/http/api.decorator.ts';
import { PUBLIC_ORIGIN, type PublicOrigin } from '../platform/tokens.ts';
import { AccountService, BROWSER_SESSION_MS } from './account.service.ts';
import { Authenticator, COOKIE_NAME } from './authenticator.ts';
import { Public } from '../platform/http/public.decorator.ts';
import { cookieOf, readCookie } from './cookies.ts';
import { SocketWatch } from './socket-watch.ts';

const signInBodySchema = z.object({ key: z.string().min(1) });
const okSchema = z.object({ ok: z.literal(true) });

/** Browsers get a cookie, by the link that the terminal printed or by pasting an API key. */
@Controller()
export class SignInController {
  constructor(
    private readonly accounts: AccountService,
    private readonly authenticator: Authenticator,
    private readonly watch: SocketWatch,
    @Inject(PUBLIC_ORIGIN) private readonly origin: PublicOrigin,
  ) {}

  @Get('login')
  @Public()
  async byLink(@Query('token') token: string | undefined, @Res() reply: FastifyReply): Promise<void> {
    const cookie = token ? await this.accounts.redeemSignInToken(token) : null;
    // A used link is no error for somebody who is signed in already: the page says what to do for anybody else.
    if (cookie) reply.header('set-cookie', this.#cookie(cookie, BROWSER_SESSION_MS / 1000));
    await reply.redirect('/', 303);
  }

  @Post('v1/login')
  @Public()
  @Api({ summary: 'Sign a browser in with an API key', body: signInBodySchema, response: okSchema })
  async byKey(@Body({ schema: signInBodySchema }) body: z.infer<typeof signInBodySchema>, @Res({ passthrough: true }) reply: FastifyReply) {
    const caller = await this.authenticator.ofKey(body.key.trim());
    reply.header('set-cookie', this.#cookie(await this.accounts.openBrowserSession(caller), BROWSER_SESSION_MS / 1000));
    return { ok: true };
  }

  @Post('v1/logout')
  @Public()
  @Api({ summary: 'Sign the browser out', response: okSchema })
  async logout(@Req() request: FastifyRequest, @Res({ passthrough: true }) reply: FastifyReply) {
    const token = readCookie(request.headers.cookie, COOKIE_NAME);
    if (token) await this.accounts.closeBrowserSession(token);
    this.authenticator.forget();
    await this.watch.look();
    reply.header('set-cookie', this.#cookie('', 0));
    return { ok: true };
  }

  #cookie(value: string, maxAgeSeconds: number): string {
    return cookieOf(COOKIE_NAME, value, maxAgeSeconds, this.origin.url);
  }
}
