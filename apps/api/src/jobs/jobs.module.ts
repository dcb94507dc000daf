import { Global, Module } from '@nestjs/common';
import { AuditRetention } from './audit-retention.ts';
import { JobQueue } from './job-queue.service.ts';

/** The job queue. Any module may add jobs and handle some. */
@Global()
@Module({ providers: [AuditRetention, JobQueue], exports: [JobQueue] })
export class JobsModule {}
