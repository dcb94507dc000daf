import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import { Database } from '../../platform/database/database.ts';
import { LOGGER } from '../../platform/tokens.ts';
import { createPartition, dayAfter, dropEmptyPartition, selectPartitions, selectToday } from './partition.sql.ts';

const DAYS_AHEAD = 2;
const KEPT_DAYS = 2;

/**
 * Message rows have one partition per day. Sealing empties it, and dropping an empty partition frees its space without a vacuum. Rows of a
 * day without a partition are in the default partition.
 */
@Injectable()
export class PartitionService {
  constructor(
    private readonly database: Database,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  /** Creates partitions for today and the next days, and drops old empty ones. Returns the days of both. */
  async maintain(): Promise<{ created: string[]; dropped: string[] }> {
    const { pool } = this.database;
    const [today, present] = await Promise.all([selectToday(pool), selectPartitions(pool)]);
    const created: string[] = [];
    for (let ahead = 0; ahead <= DAYS_AHEAD; ahead += 1) {
      const day = dayAfter(today, ahead);
      if (present.includes(day)) continue;
      const outcome = await createPartition(pool, day);
      if (outcome === 'done') created.push(day);
      else this.logger.info({ day, outcome }, 'no message partition for that day; the default partition has its rows');
    }
    const dropped: string[] = [];
    for (const day of present.filter((other) => other < dayAfter(today, -KEPT_DAYS))) {
      if ((await dropEmptyPartition(pool, day)) === 'done') dropped.push(day);
    }
    return { created, dropped };
  }
}
