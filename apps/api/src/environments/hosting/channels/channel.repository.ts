import { Injectable } from '@nestjs/common';
import { PalestraError } from '@palestra/protocol';
import { Database } from '../../../platform/database/database.ts';
import type { Prisma } from '../../../platform/generated/prisma/client.ts';

const withVersions = { version: true, previousVersion: true, canaryVersion: true } satisfies Prisma.EnvironmentChannelInclude;
export type ChannelRecord = Prisma.EnvironmentChannelGetPayload<{ include: typeof withVersions }>;

/** A change of a channel, which its row must allow: it is decided on the row that is locked for it. */
export type ChannelChange = Pick<
  Prisma.EnvironmentChannelUncheckedUpdateInput,
  'versionId' | 'previousVersionId' | 'canaryVersionId' | 'canaryPercent' | 'reason'
>;

/** Rows of channels. It does not check permissions. */
@Injectable()
export class ChannelRepository {
  constructor(private readonly database: Database) {}

  async find(environmentId: string, name: string): Promise<ChannelRecord | null> {
    return this.database.prisma.environmentChannel.findUnique({
      where: { environmentId_name: { environmentId, name } },
      include: withVersions,
    });
  }

  async list(environmentId: string): Promise<ChannelRecord[]> {
    return this.database.prisma.environmentChannel.findMany({ where: { environmentId }, include: withVersions, orderBy: { name: 'asc' } });
  }

  /** Channels with a canary. */
  async listCanaries(): Promise<ChannelRecord[]> {
    return this.database.prisma.environmentChannel.findMany({
      where: { canaryVersionId: { not: null }, canaryPercent: { gt: 0 } },
      include: withVersions,
    });
  }

  /**
   * Changes a channel, or creates it. Changes of one environment run one after another. `decide` gets the stored channel and throws to change
   * nothing; null changes nothing either.
   */
  async change(
    environmentId: string,
    name: string,
    decide: (stored: ChannelRecord | null) => (ChannelChange & { versionId: string; reason: string }) | null,
  ): Promise<ChannelRecord | null> {
    const key = { environmentId_name: { environmentId, name } };
    return this.database.prisma.$transaction(async (transaction) => {
      const locked = await transaction.$queryRaw<unknown[]>`SELECT FROM environments WHERE id = ${environmentId}::uuid FOR UPDATE`;
      if (locked.length === 0) throw new PalestraError('environment_not_found');
      const stored = await transaction.environmentChannel.findUnique({ where: key, include: withVersions });
      const change = decide(stored);
      if (change === null) return null;
      const data = { ...change, updatedAt: new Date() };
      return transaction.environmentChannel.upsert({
        where: key,
        update: data,
        create: { environmentId, name, ...data } as Prisma.EnvironmentChannelUncheckedCreateInput,
        include: withVersions,
      });
    });
  }
}
