import { Module } from '@nestjs/common';
import { MetricsController } from './observers/metrics.controller.ts';
import { SessionMetrics } from './observers/metrics.ts';
import { SessionLog } from './observers/session-log.ts';
import { SessionsModule } from './sessions.module.ts';
import { SessionTraces } from './observers/traces.ts';

/** Metrics, traces and logs of sessions for operators. They observe the engine. */
@Module({ imports: [SessionsModule], controllers: [MetricsController], providers: [SessionMetrics, SessionLog, SessionTraces] })
export class ObservabilityModule {}
