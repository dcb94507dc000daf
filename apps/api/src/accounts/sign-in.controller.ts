import { Body, Controller, Get, Post, Query, Req, Res } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { signInBodySchema } from '@palestra/protocol/schemas';
import { Api } from '../platform/http/api.decorator.ts';
import { Public } from '../platform/http/public.decorator.ts';
import { nextPath } from './next-path.ts';
import { SIGN_IN_PAGE_HEADERS, signInPage } from './sign-in-page.ts';
import { SignInService } from './sign-in.service.ts';

const okSchema = z.object({ ok: z.literal(true) });

/** Browsers get a cookie, by the link that the terminal printed or by an API key. */
@Controller()
export class SignInController {
  constructor(private readonly signIn: SignInService) {}

  /** A page with a button: a link preview, or a page of another site that opens the link, must not use it. */
  @Get('login')
  @Public()
  async confirmLink(
    @Query('token') token: string | undefined,
    @Query('next') next: string | undefined,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const then = nextPath(next);
    // A user who is signed in already may open a used link; for others the page explains what to do.
    if (!(await this.signIn.isValidLink(token, request))) await reply.redirect(then, 303);
    else await reply.headers(SIGN_IN_PAGE_HEADERS).type('text/html; charset=utf-8').send(signInPage(token!, then));
  }

  @Post('login')
  @Public()
  @RouteConfig({ rawBody: true })
  async byLink(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    const { cookie, next } = await this.signIn.signInByLink(request);
    if (cookie !== null) reply.header('set-cookie', cookie);
    await reply.redirect(next, 303);
  }

  @Post('v1/login')
  @Public()
  @Api({ summary: 'Sign a browser in with an API key', body: signInBodySchema, response: okSchema, errors: ['rate_limited'] })
  async byKey(
    @Body({ schema: signInBodySchema }) body: z.infer<typeof signInBodySchema>,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    reply.header('set-cookie', await this.signIn.signInByKey(body.key.trim(), request));
    return { ok: true };
  }

  @Post('v1/logout')
  @Public()
  @Api({ summary: 'Sign the browser out', response: okSchema })
  async logout(@Req() request: FastifyRequest, @Res({ passthrough: true }) reply: FastifyReply) {
    reply.header('set-cookie', await this.signIn.signOut(request));
    return { ok: true };
  }
}
