import type pg from 'pg';
import { PrismaPg } from '@prisma/adapter-pg';
import { PrismaClient } from '../generated/prisma/client.ts';
import type { DatabaseMonitor } from './database-monitor.ts';
import { openPool } from './pool.ts';

/** Connections of `Database.pipelines`. */
export const PIPELINES = 4;

/** PostgreSQL: Prisma for the control plane, plain pools for the statements of `*.sql.ts` files. */
export class Database {
  readonly pool: pg.Pool;
  /** A few connections that are sent a statement before the one before it has answered; of COPY they take `copyOut` alone. For work that would leave PostgreSQL idle while Node reads an answer. */
  readonly pipelines: pg.Pool;
  readonly prisma: PrismaClient;

  constructor(
    readonly connectionString: string,
    poolSize: number,
    /** Stopped by `close`. null: tests that need only the pools. */
    readonly monitor: DatabaseMonitor | null = null,
  ) {
    this.pool = openPool({ connectionString, max: poolSize, connectionTimeoutMillis: 5_000, statement_timeout: 30_000 });
    this.pipelines = openPool({
      connectionString,
      max: PIPELINES,
      pipeline: true,
      connectionTimeoutMillis: 30_000,
      statement_timeout: 30_000,
    });
    this.prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString, max: 4, connectionTimeoutMillis: 5_000 }) });
  }

  async close(): Promise<void> {
    await this.monitor?.stop();
    await Promise.allSettled([this.pool.end(), this.pipelines.end(), this.prisma.$disconnect()]);
  }
}
