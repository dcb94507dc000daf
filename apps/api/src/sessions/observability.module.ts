import { Module } from '@nestjs/common';
import { MetricsController } from './observers/metrics.controller.ts';
import { SessionMetrics } from './observers/metrics.ts';
import { SessionLog } from './observers/session-log.ts';
import { SessionsModule } from './sessions.module.ts';
import { SessionTraces } from './observers/traces.ts';

/** What operators see of sessions: metrics, traces, logs. All of it hangs on the engine's observer. */
@Module({ imports: [SessionsModule], controllers: [MetricsController], providers: [SessionMetrics, SessionLog, SessionTraces] })
export class ObservabilityModule {}
