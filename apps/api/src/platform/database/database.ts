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
    // Every statement of the pool has an index. Where PostgreSQL takes a part of a table for most of it, it would read the rows of all organisations.
    // Without compilation: where a scan is the only plan, its price alone would cause one, which takes longer than the statement.
    const options = '-c enable_seqscan=off -c jit=off';
    this.pool = openPool({ connectionString, max: poolSize, connectionTimeoutMillis: 5_000, statement_timeout: 30_000, options });
    this.prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString, max: 4, connectionTimeoutMillis: 5_000 }) });
  }

  async close(): Promise<void> {
    await this.monitor?.stop();
    await Promise.allSettled([this.pool.end(), this.prisma.$disconnect()]);
  }
}
