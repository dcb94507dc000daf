import { Controller, Get, Header, Inject, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { PalestraError } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { Authenticator } from '../../accounts/authenticator.ts';
import { assertOperatorKey } from '../../accounts/owner.ts';
import { Public } from '../../platform/http/public.decorator.ts';
import { Api } from '../../platform/http/api.decorator.ts';
import { type Config, CONFIG } from '../../platform/config.ts';
import { mergeMetrics, Metrics } from '../../platform/telemetry/metrics.ts';
import { WORKER } from '../../platform/tokens.ts';
import type { WorkerProcess } from '../../platform/worker-process.ts';

@Controller('metrics')
@Public()
export class MetricsController {
  constructor(
    @Inject(CONFIG) private readonly config: Config,
    private readonly authenticator: Authenticator,
    private readonly metrics: Metrics,
    @Inject(WORKER) private readonly worker: WorkerProcess | null,
  ) {}

  @Get()
  @Header('content-type', 'text/plain; version=0.0.4; charset=utf-8')
  @Api({
    summary: 'Metrics for Prometheus, as text, for the operator; takes an API key also as a bearer token',
    text: true,
    errors: ['unauthorized', 'forbidden'],
  })
  async get(@Req() request: FastifyRequest) {
    // Metrics name environments and tools of all organisations, so only operators may read them.
    if (!this.config.metricsPublic) assertOperatorKey(request.caller ?? (await this.#authenticateBearer(request)), 'Metrics are');
    const [ours, jobs] = await Promise.all([this.metrics.registry.metrics(), this.worker?.metrics() ?? '']);
    return mergeMetrics(ours, jobs);
  }

  /** Scrapers can send a bearer token, but not our header. */
  async #authenticateBearer(request: FastifyRequest): Promise<Caller> {
    const token = /^Bearer\s+(\S+)$/i.exec(request.headers.authorization ?? '')?.[1];
    if (token === undefined) throw new PalestraError('unauthorized');
    return this.authenticator.ofKey(token, request.raw);
  }
}
