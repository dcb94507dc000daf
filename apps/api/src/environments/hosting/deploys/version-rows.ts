import { Inject, Injectable } from '@nestjs/common';
import type { EnvironmentDiscoveryView, HostingSettings } from '@palestra/protocol';
import { Database } from '../../../platform/database/database.ts';
import { Prisma } from '../../../platform/generated/prisma/client.ts';
import { type HostedSource, sourceColumns, type VersionRecord } from '../../environment.record.ts';
import type { ServerKind } from '@palestra/hosting';
import type { Probed } from '../probe/probe.ts';

/** What a probe found out about a version. */
export interface VerifiedVersion extends Probed {
  protocol: ServerKind;
  discovery: EnvironmentDiscoveryView;
}

/** Rows of versions that deploys make. */
@Injectable()
export class VersionRows {
  constructor(@Inject(Database) private readonly database: Database) {}

  /** The newest verified version of the same source on the same engine, with the same uploaded tasks; null without one. */
  async findEqual(
    environmentId: string,
    { provider, ...digests }: { provider: string; sourceDigest: string } | { provider: string; artifactDigest: string },
    taskSetId: string | null,
  ): Promise<VersionRecord | null> {
    return this.database.prisma.environmentVersion.findFirst({
      where: { environmentId, state: 'ready', sourceKind: 'hosted', provider, taskSetId, ...digests },
      orderBy: { number: 'desc' },
    });
  }

  /** The version of an earlier attempt of the deploy; null without one. */
  async ofDeploy(deployId: string): Promise<VersionRecord | null> {
    return this.database.prisma.environmentVersion.findFirst({ where: { deployId } });
  }

  /** Adds a version to which nothing resolves until it is published. */
  async add(environmentId: string, source: HostedSource, taskSetId: string | null): Promise<VersionRecord> {
    return this.database.prisma.$transaction(async (transaction) => {
      // The environment's row is the lock for the numbers of its versions.
      await transaction.environment.update({ where: { id: environmentId }, data: { updatedAt: new Date() } });
      const newest = await transaction.environmentVersion.findFirst({ where: { environmentId }, orderBy: { number: 'desc' } });
      const number = (newest?.number ?? 0) + 1;
      return transaction.environmentVersion.create({
        data: { environmentId, number, taskSetId, state: 'verifying', ...sourceColumns(source) },
      });
    });
  }

  /** Stores what the probe found out, and lets names resolve to the version. */
  async publish(id: string, { protocol, discovery, probe, toolsDigest, tasksDigest }: VerifiedVersion): Promise<VersionRecord> {
    return this.database.prisma.environmentVersion.update({
      where: { id },
      data: {
        state: 'ready',
        protocol,
        discovery: discovery as unknown as Prisma.InputJsonObject,
        discoveredAt: new Date(discovery.discovered_at),
        probe: probe as unknown as Prisma.InputJsonObject,
        toolsDigest,
        tasksDigest,
      },
    });
  }

  /** Deletes a version that was not published. Its instances end without it. */
  async discard(deployId: string): Promise<void> {
    await this.database.prisma.environmentVersion.deleteMany({ where: { deployId, state: 'verifying' } });
  }

  /** Of an environment; null if it has none, as before its first deploy. */
  async settings(environmentId: string): Promise<HostingSettings | null> {
    const row = await this.database.prisma.environment.findUnique({ where: { id: environmentId }, select: { hosting: true } });
    return (row?.hosting ?? null) as HostingSettings | null;
  }

  async saveSettings(environmentId: string, settings: HostingSettings): Promise<void> {
    await this.database.prisma.environment.updateMany({ where: { id: environmentId }, data: { hosting: settings } });
  }

  /** Replaces `from` by `to`. Does nothing if the environment has other settings, because somebody has changed them. */
  async replaceSettings(environmentId: string, from: HostingSettings | null, to: HostingSettings | null): Promise<void> {
    const where = { id: environmentId, hosting: { equals: from ?? Prisma.DbNull } };
    await this.database.prisma.environment.updateMany({ where, data: { hosting: to ?? Prisma.DbNull } });
  }
}
