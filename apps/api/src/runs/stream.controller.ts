import { Controller, Get, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { encodeSseEvent, encodeSseHeartbeat, SSE_HEADERS } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { CurrentCaller, RequireScope } from '../accounts/caller.decorator.ts';
import { RunActivity, type RunNews } from './run-activity.service.ts';

/** Time between comments that keep proxies from closing an idle stream (dashboard.md section 7). */
const PING_MS = 15_000;
/** A reader that takes nothing is cut; it reconnects and reads the newest state. */
const MAX_PENDING_BYTES = 256 * 1024;

@Controller('v1/stream')
@RequireScope('rollouts')
export class StreamController {
  constructor(private readonly activity: RunActivity) {}

  /** Server-sent events `run {id}` for runs that something arrived in, at most one a second each; `?run=` for one run only. */
  @Get()
  stream(
    @CurrentCaller() caller: Caller,
    @Query('run') run: string | undefined,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): void {
    reply.hijack();
    const { raw } = reply;
    raw.on('error', () => {});
    raw.writeHead(200, SSE_HEADERS);
    raw.write(encodeSseHeartbeat(new Date()));
    const send = (touched: RunNews) => {
      if (run !== undefined && run !== touched.id) return;
      if (raw.writableLength > MAX_PENDING_BYTES) raw.destroy();
      else raw.write(encodeSseEvent('run', JSON.stringify({ id: touched.id, v: touched.v, steps: touched.steps })));
    };
    const unsubscribe = this.activity.subscribe(caller.orgId, send);
    const ping = setInterval(() => raw.write(encodeSseHeartbeat(new Date())), PING_MS);
    request.raw.once('close', () => {
      clearInterval(ping);
      unsubscribe();
    });
  }
}
