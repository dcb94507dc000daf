import type pg from 'pg';
import { PrismaPg } from '@prisma/adapter-pg';
import { PrismaClient } from '../generated/prisma/client.ts';
import type { DatabaseMonitor } from './database-monitor.ts';
import { openPool } from './pool.ts';

/** PostgreSQL: Prisma for the management tables, a plain pool for the statements of `*.sql.ts` files. */
export class Database {
  readonly pool: pg.Pool;
  readonly prisma: PrismaClient;

  constructor(
    readonly connectionString: string,
    poolSize: number,
    /** `close` stops it. null: for tests that need only the pools. */
    readonly monitor: DatabaseMonitor | null = null,
  ) {
    this.pool = openPool({ connectionString, max: poolSize, connectionTimeoutMillis: 5_000, statement_timeout: 30_000 });
    this.prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString, max: 4, connectionTimeoutMillis: 5_000 }) });
  }

  async close(): Promise<void> {
    await this.monitor?.stop();
    await Promise.allSettled([this.pool.end(), this.prisma.$disconnect()]);
  }
}
