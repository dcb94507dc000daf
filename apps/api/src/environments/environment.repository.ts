import { Inject, Injectable } from '@nestjs/common';
import { isUuid } from '@palestra/kit';
import { type EnvironmentDiscoveryView, type EnvironmentReport, type EnvironmentReportView, PalestraError } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { isDuplicate } from '../platform/database/database-errors.ts';
import { Database } from '../platform/database/database.ts';
import { Prisma } from '../platform/generated/prisma/client.ts';
import {
  currentOf,
  currentVersion,
  type EnvironmentRecord,
  type EnvironmentSource,
  newestVersion,
  sourceColumns,
  type VersionRecord,
} from './environment.record.ts';

export interface NewEnvironment {
  orgId: string | null;
  owner: string;
  name: string;
  description: string;
  isPrivate: boolean;
  isHarbor: boolean;
  readmeContent: string | null;
}

/** PostgreSQL's text cannot have a NUL, so no stored name has one. */
const isStorable = (text: string): boolean => !text.includes('\0');

/** Rows of the registry. It does not check permissions. */
@Injectable()
export class EnvironmentRepository {
  constructor(@Inject(Database) private readonly database: Database) {}

  async create(
    environment: NewEnvironment,
    source: EnvironmentSource | null,
    discovery: EnvironmentDiscoveryView | null,
    number = 1,
  ): Promise<EnvironmentRecord> {
    const version = source === null ? {} : { versions: { create: { number, ...sourceColumns(source), ...discoveryColumns(discovery) } } };
    return this.#rejectDuplicate(environment.owner, environment.name, () =>
      this.database.prisma.environment.create({ data: { ...environment, ...version }, include: newestVersion }),
    );
  }

  /** Two servers may start on one database at the same time; the second one finds the rows of the first. */
  async createIfMissing(environment: NewEnvironment, source: EnvironmentSource, number: number): Promise<void> {
    try {
      await this.create(environment, source, null, number);
    } catch (error) {
      if (!(error instanceof PalestraError) || error.code !== 'environment_exists') throw error;
    }
  }

  async update(environment: EnvironmentRecord, data: Prisma.EnvironmentUpdateInput): Promise<EnvironmentRecord> {
    const name = typeof data.name === 'string' ? data.name : environment.name;
    return this.#rejectDuplicate(environment.owner, name, async () =>
      currentOf(await this.database.prisma.environment.update({ where: { id: environment.id }, data, include: currentVersion })),
    );
  }

  /** `taskSetId`: its uploaded tasks; null = the server has the tasks. */
  async addVersion(
    environmentId: string,
    source: EnvironmentSource,
    discovery: EnvironmentDiscoveryView | null,
    taskSetId: string | null,
  ): Promise<VersionRecord> {
    return this.database.prisma.$transaction(async (transaction) => {
      // The environment's row is the lock for the numbers of its versions.
      await transaction.environment.update({ where: { id: environmentId }, data: { updatedAt: new Date() } });
      const newest = await transaction.environmentVersion.findFirst({ where: { environmentId }, orderBy: { number: 'desc' } });
      const number = (newest?.number ?? 0) + 1;
      return transaction.environmentVersion.create({
        data: { environmentId, number, taskSetId, ...sourceColumns(source), ...discoveryColumns(discovery) },
      });
    });
  }

  /** Adds a version with this number unless the newest one has it. Two servers may start at the same time; one of them adds it. */
  async ensureVersion(environmentId: string, number: number, source: EnvironmentSource): Promise<void> {
    await this.database.prisma.$transaction(async (transaction) => {
      await transaction.environment.update({ where: { id: environmentId }, data: { updatedAt: new Date() } });
      const newest = await transaction.environmentVersion.findFirst({ where: { environmentId }, orderBy: { number: 'desc' } });
      if ((newest?.number ?? 0) >= number) return;
      await transaction.environmentVersion.create({ data: { environmentId, number, ...sourceColumns(source), ...discoveryColumns(null) } });
    });
  }

  async saveDiscovery(versionId: string, discovery: EnvironmentDiscoveryView): Promise<void> {
    // A version that was deleted meanwhile needs no discovery.
    await this.database.prisma.environmentVersion.updateMany({ where: { id: versionId }, data: discoveryColumns(discovery) });
  }

  /** Sets description and README where the environment has none. */
  async fillCard(id: string, { description, readme }: { description: string; readme: string | null }): Promise<void> {
    const { environment } = this.database.prisma;
    if (description !== '') await environment.updateMany({ where: { id, description: '' }, data: { description } });
    if (readme !== null) await environment.updateMany({ where: { id, readmeContent: null }, data: { readmeContent: readme } });
  }

  /** Replaces the report of a version. */
  async saveReport({ orgId }: EnvironmentRecord, versionId: string, report: EnvironmentReport): Promise<void> {
    const values = { report: report as unknown as Prisma.InputJsonValue, updatedAt: new Date() };
    await this.database.prisma.environmentReport.upsert({
      where: { versionId },
      create: { versionId, orgId, ...values },
      update: values,
    });
  }

  /** The report of the newest version that has one. */
  async report({ id, orgId }: EnvironmentRecord): Promise<EnvironmentReportView | null> {
    const stored = await this.database.prisma.environmentReport.findFirst({
      where: { orgId, version: { environmentId: id } },
      orderBy: { version: { number: 'desc' } },
      include: { version: { select: { number: true } } },
    });
    if (stored === null) return null;
    const report = stored.report as EnvironmentReport;
    return { ...report, version: stored.version.number, received_at: stored.updatedAt.toISOString() };
  }

  /** The id of a version by its number; null without one. */
  async versionId(environmentId: string, number: number): Promise<string | null> {
    const version = await this.database.prisma.environmentVersion.findFirst({ where: { environmentId, number }, select: { id: true } });
    return version?.id ?? null;
  }

  /** Its uploaded files must be deleted before. */
  async delete(id: string): Promise<void> {
    await this.database.prisma.environment.deleteMany({ where: { id } });
    await this.database.prisma.environmentFile.deleteMany({ where: { key: { startsWith: `environments/${id}/` } } });
  }

  async find(owner: string, name: string): Promise<EnvironmentRecord | null> {
    if (!isStorable(owner + name)) return null;
    const row = await this.database.prisma.environment.findUnique({ where: { owner_name: { owner, name } }, include: currentVersion });
    return row === null ? null : currentOf(row);
  }

  async hasGitLink(environmentId: string): Promise<boolean> {
    return (await this.database.prisma.environmentGitLink.count({ where: { environmentId } })) > 0;
  }

  async findById(id: string): Promise<EnvironmentRecord | null> {
    if (!isUuid(id)) return null;
    const row = await this.database.prisma.environment.findUnique({ where: { id }, include: currentVersion });
    return row === null ? null : currentOf(row);
  }

  /** Environments with that name that the caller may see. Those of the caller's organisation come first: others cannot crowd them out. */
  async findByName(name: string, caller: Caller | undefined): Promise<EnvironmentRecord[]> {
    if (!isStorable(name)) return [];
    const find = (where: Prisma.EnvironmentWhereInput) =>
      this.database.prisma.environment.findMany({
        where: { AND: [{ name }, visibleTo(caller), where] },
        include: currentVersion,
        orderBy: { owner: 'asc' },
        take: 10,
      });
    const orgId = caller?.orgId;
    const own = orgId === undefined ? [] : await find({ orgId });
    const others = await find(orgId === undefined ? {} : { OR: [{ orgId: null }, { NOT: { orgId } }] });
    return [...own, ...others].map((row) => currentOf(row));
  }

  /** The environment with its newest version, also where a channel follows another one. */
  async findNewest(owner: string, name: string): Promise<EnvironmentRecord | null> {
    return this.database.prisma.environment.findUnique({ where: { owner_name: { owner, name } }, include: newestVersion });
  }

  /** The environment with exactly that version; without a version if that is not verified. */
  async findVersion(owner: string, name: string, number: number): Promise<EnvironmentRecord | null> {
    return this.database.prisma.environment.findUnique({
      where: { owner_name: { owner, name } },
      include: { versions: { where: { number, state: 'ready' } } },
    });
  }

  async findVersionById(versionId: string): Promise<EnvironmentRecord | null> {
    if (!isUuid(versionId)) return null;
    return this.database.prisma.environment.findFirst({
      where: { versions: { some: { id: versionId } } },
      include: { versions: { where: { id: versionId } } },
    });
  }

  /** All versions, newest first. */
  async versions(environmentId: string): Promise<VersionRecord[]> {
    return this.database.prisma.environmentVersion.findMany({ where: { environmentId }, orderBy: { number: 'desc' } });
  }

  async versionIds(environmentId: string): Promise<string[]> {
    const versions = await this.database.prisma.environmentVersion.findMany({ where: { environmentId }, select: { id: true } });
    return versions.map((version) => version.id);
  }

  async list(
    caller: Caller | undefined,
    filter: { owner?: string | undefined; search?: string | undefined; limit: number; offset: number },
  ): Promise<{ records: EnvironmentRecord[]; total: number }> {
    const where: Prisma.EnvironmentWhereInput = {
      AND: [visibleTo(caller)],
      ...(filter.owner === undefined ? {} : { owner: filter.owner }),
    };
    if (filter.search) where.OR = searchConditions(filter.search);
    const [records, total] = await Promise.all([
      this.database.prisma.environment.findMany({
        where,
        include: currentVersion,
        orderBy: [{ owner: 'asc' }, { name: 'asc' }],
        skip: filter.offset,
        take: filter.limit,
      }),
      this.database.prisma.environment.count({ where }),
    ]);
    return { records: records.map((row) => currentOf(row)), total };
  }

  async userName(userId: string): Promise<string | null> {
    const user = await this.database.prisma.user.findUnique({ where: { id: userId }, select: { name: true } });
    return user?.name ?? null;
  }

  async #rejectDuplicate<T>(owner: string, name: string, write: () => Promise<T>): Promise<T> {
    try {
      return await write();
    } catch (error) {
      if (!isDuplicate(error)) throw error;
      throw new PalestraError('environment_exists', { detail: `An environment named ${owner}/${name} exists already.`, cause: error });
    }
  }
}

function discoveryColumns(discovery: EnvironmentDiscoveryView | null) {
  if (discovery === null) return {};
  return { discovery: discovery as unknown as Prisma.InputJsonValue, discoveredAt: new Date(discovery.discovered_at) };
}

function visibleTo(caller: Caller | undefined): Prisma.EnvironmentWhereInput {
  return caller === undefined || caller.anonymous ? { isPrivate: false } : { OR: [{ isPrivate: false }, { orgId: caller.orgId }] };
}

/** Matches `owner/name`, or a word of the name, the owner or the description. */
function searchConditions(text: string): Prisma.EnvironmentWhereInput[] {
  const contains = (word: string) => ({ contains: word, mode: 'insensitive' as const });
  const [owner, name] = text.split('/', 2);
  const fields: Prisma.EnvironmentWhereInput[] = [{ name: contains(text) }, { owner: contains(text) }, { description: contains(text) }];
  return name === undefined ? fields : [...fields, { owner: contains(owner ?? ''), name: contains(name) }];
}
