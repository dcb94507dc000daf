import { Module } from '@nestjs/common';
import { PlatformModule } from './platform/platform.module.ts';
import { AccountsModule } from './accounts/accounts.module.ts';
import { EnvironmentsModule } from './environments/environments.module.ts';
import { SessionsModule } from './sessions/sessions.module.ts';
import { RolloutsModule } from './rollouts/rollouts.module.ts';
import { RunsModule } from './runs/runs.module.ts';
import { ExportsModule } from './exports/exports.module.ts';
import { FilesModule } from './files/files.module.ts';

@Module({
  imports: [PlatformModule, AccountsModule, EnvironmentsModule, SessionsModule, RolloutsModule, RunsModule, ExportsModule, FilesModule],
})
export class AppModule {}
