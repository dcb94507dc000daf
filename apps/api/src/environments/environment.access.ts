import { Inject, Injectable } from '@nestjs/common';
import { PalestraError } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { isNamespace } from '../accounts/namespaces.ts';
import type { EnvironmentRecord } from './environment.record.ts';
import { EnvironmentRepository } from './environment.repository.ts';

export const mayManage = (environment: EnvironmentRecord, caller: Caller | undefined): boolean =>
  caller !== undefined && !caller.anonymous && environment.orgId !== null && environment.orgId === caller.orgId;

export const maySee = (environment: EnvironmentRecord, caller: Caller | undefined): boolean =>
  !environment.isPrivate || mayManage(environment, caller);

/** Finds an environment for a caller, or throws. A private environment of another tenant counts as missing. */
@Injectable()
export class EnvironmentAccess {
  constructor(@Inject(EnvironmentRepository) private readonly repository: EnvironmentRepository) {}

  /** An empty owner means a bare name: an environment of the caller's organisation, else the only public one with that name. */
  async visible(caller: Caller | undefined, owner: string, name: string): Promise<EnvironmentRecord> {
    const environment = owner === '' ? (await this.byName(caller, name)).found : await this.repository.find(owner, name);
    if (environment === null || !maySee(environment, caller)) throw new PalestraError('environment_not_found');
    return environment;
  }

  async visibleById(caller: Caller | undefined, id: string): Promise<EnvironmentRecord> {
    const environment = await this.repository.findById(id);
    if (environment === null || !maySee(environment, caller)) throw new PalestraError('environment_not_found');
    return environment;
  }

  async managed(caller: Caller, owner: string, name: string): Promise<EnvironmentRecord> {
    const environment = await this.visible(caller, owner, name);
    if (!mayManage(environment, caller)) {
      throw new PalestraError('forbidden', { detail: `${environment.owner}/${environment.name} belongs to another organisation.` });
    }
    return environment;
  }

  /** The namespace of a new environment: the organisation's or the user's. */
  async namespace(caller: Caller, wanted: string | null): Promise<string> {
    if (caller.anonymous) throw new PalestraError('forbidden', { detail: 'An anonymous caller cannot create environments.' });
    if (wanted === null || wanted === caller.orgName) return caller.orgName;
    // The database assigns a name to one organisation or one user (migration 0022_namespaces).
    if (isNamespace(wanted) && wanted === (await this.repository.userName(caller.userId))) return wanted;
    throw new PalestraError('forbidden', {
      detail: `This API key cannot create environments in the namespace '${wanted}'. Use '${caller.orgName}'.`,
    });
  }

  /** Resolves a bare name. `candidates`: all visible environments with that name. */
  async byName(caller: Caller | undefined, name: string): Promise<{ found: EnvironmentRecord | null; candidates: EnvironmentRecord[] }> {
    const candidates = (await this.repository.findByName(name, caller)).filter((environment) => maySee(environment, caller));
    const manageable = candidates.filter((environment) => mayManage(environment, caller));
    const inOrganisation = manageable.find((environment) => environment.owner === caller?.orgName);
    const found = inOrganisation ?? manageable[0] ?? (candidates.length === 1 ? candidates[0]! : null);
    return { found, candidates };
  }
}
