import { type DynamicModule, Module } from '@nestjs/common';
import { AccountsModule } from './accounts/accounts.module.ts';
import { AlertsModule } from './alerts/alerts.module.ts';
import { AnnotationsModule } from './annotations/annotations.module.ts';
import { DemoModule } from './demo/demo.module.ts';
import { EnvironmentsModule } from './environments/environments.module.ts';
import { ExportsModule } from './exports/exports.module.ts';
import { FilesModule } from './files/files.module.ts';
import { HealthModule } from './health/health.module.ts';
import { JobsModule } from './jobs/jobs.module.ts';
import { type PlatformDependencies, PlatformModule } from './platform/platform.module.ts';
import { RunReadsModule } from './runs/run-reads.module.ts';
import { RunsModule } from './runs/runs.module.ts';
import { ObservabilityModule } from './sessions/observability.module.ts';
import { RecordingModule } from './sessions/recording.module.ts';
import { ReviewsModule } from './reviews/reviews.module.ts';
import { SessionsModule } from './sessions/sessions.module.ts';
import { SharesModule } from './shares/shares.module.ts';

@Module({})
export class AppModule {
  static with(dependencies: PlatformDependencies): DynamicModule {
    return {
      module: AppModule,
      imports: [
        PlatformModule.with(dependencies),
        JobsModule,
        AccountsModule,
        FilesModule,
        EnvironmentsModule,
        SessionsModule,
        RunsModule,
        RunReadsModule,
        AnnotationsModule,
        ReviewsModule,
        RecordingModule,
        ObservabilityModule,
        ExportsModule,
        SharesModule,
        DemoModule,
        AlertsModule,
        HealthModule,
      ],
    };
  }
}
