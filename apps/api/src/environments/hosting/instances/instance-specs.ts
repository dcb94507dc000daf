import { Inject, Injectable } from '@nestjs/common';
import { HostingError, type InstanceSpec, type PoolSpec } from '@palestra/hosting';
import { hostingSettingsSchema } from '@palestra/protocol/schemas';
import { Database } from '../../../platform/database/database.ts';
import { HostingProviders } from '../providers/hosting-providers.ts';
import { assertSupported, runSettings } from '../providers/supported-settings.ts';
import { EnvironmentSecrets } from '../secrets/environment-secrets.ts';
import { markSingle, selectSpec, selectVersionSpec, type StoredSpec } from './instance-spec.sql.ts';
import { isPerSession } from './snapshot.ts';

const ANSWER_MS = 10_000;

/** What engines need to start instances: artifact, settings and secrets, as they are now. */
@Injectable()
export class InstanceSpecs {
  constructor(
    @Inject(Database) private readonly database: Database,
    @Inject(HostingProviders) private readonly providers: Pick<HostingProviders, 'get'>,
    @Inject(EnvironmentSecrets) private readonly secrets: EnvironmentSecrets,
  ) {}

  /** Null when the instance must not start any more. Throws `HostingError` for settings that its engine cannot enforce. */
  async load(id: string): Promise<InstanceSpec | null> {
    const row = await selectSpec(this.database.pool, id);
    if (row === null) return null;
    const { spec, single } = await this.#specOf(row);
    if (single) await markSingle(this.database.pool, id);
    return { id, single, ...spec };
  }

  /** What the instances of a version have in common. Null when the version was deleted. Throws as `load`. */
  async loadVersion(versionId: string): Promise<PoolSpec | null> {
    const row = await selectVersionSpec(this.database.pool, versionId);
    return row === null ? null : (await this.#specOf(row)).spec;
  }

  async #specOf(row: StoredSpec): Promise<{ spec: PoolSpec; single: boolean }> {
    const settings = hostingSettingsSchema.parse(row.settings ?? {});
    const provider = await this.providers.get(row.provider);
    if (provider === null) throw new HostingError('instance_failed', `This server has no engine "${row.provider}".`);
    const capabilities = await provider.capabilities(AbortSignal.timeout(ANSWER_MS));
    if (row.artifact.kind !== 'urls') {
      try {
        assertSupported(settings, provider.name, capabilities);
      } catch (error) {
        throw new HostingError('hosting_unsupported', (error as Error).message, { cause: error });
      }
    }
    const spec = {
      versionId: row.version_id,
      environment: row.environment,
      artifact: row.artifact,
      ...runSettings(settings, capabilities),
      secrets: await this.secrets.open(row.environment_id),
    };
    return { spec, single: isPerSession(capabilities, settings.concurrency, row.artifact.kind) };
  }
}
