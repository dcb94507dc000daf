import { Module } from '@nestjs/common';
import { EnvironmentsModule } from '../environments/environments.module.ts';
import { RunsModule } from '../runs/runs.module.ts';
import { SessionsModule } from '../sessions/sessions.module.ts';
import { DemoController } from './demo.controller.ts';
import { DemoService } from './demo.service.ts';

/** The demo that an empty server plays at its first start. */
@Module({ imports: [EnvironmentsModule, RunsModule, SessionsModule], controllers: [DemoController], providers: [DemoService] })
export class DemoModule {}
