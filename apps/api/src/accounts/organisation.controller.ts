import { Body, Controller, Delete, Get, Param, Patch, Post } from '@nestjs/common';
import type { ChangeMember, ChangeOrganisation, CreateMember, CreateOrganisation } from '@palestra/protocol';
import {
  changeMemberSchema,
  changeOrganisationSchema,
  createdMemberSchema,
  createdOrganisationSchema,
  createMemberSchema,
  createOrganisationSchema,
  deletedSchema,
  memberListSchema,
  memberSchema,
  organisationSchema,
  signInLinkSchema,
} from '@palestra/protocol/schemas';
import type { Caller } from '@palestra/session';
import { Api } from '../platform/http/api.decorator.ts';
import { CurrentCaller, RequireScope } from './caller.decorator.ts';
import { OrganisationService } from './organisation.service.ts';

@Controller('v1')
@RequireScope('keys')
export class OrganisationController {
  constructor(private readonly organisations: OrganisationService) {}

  @Get('organisation')
  @Api({ summary: 'The organisation of the key, with its settings', response: organisationSchema })
  get(@CurrentCaller() caller: Caller) {
    return this.organisations.get(caller);
  }

  @Patch('organisation')
  @Api({
    summary: 'Change the retention or the session limit',
    body: changeOrganisationSchema,
    response: organisationSchema,
    errors: ['owner_required', 'forbidden'],
  })
  change(@CurrentCaller() caller: Caller, @Body({ schema: changeOrganisationSchema }) body: ChangeOrganisation) {
    return this.organisations.change(caller, body);
  }

  @Post('organisations')
  @Api({
    summary: 'Create an organisation; only this response has its sign-in link',
    body: createOrganisationSchema,
    response: createdOrganisationSchema,
    errors: ['owner_required', 'organisation_exists', 'name_reserved', 'limit_reached'],
  })
  create(@CurrentCaller() caller: Caller, @Body({ schema: createOrganisationSchema }) body: CreateOrganisation) {
    return this.organisations.create(caller, body);
  }

  @Get('members')
  @Api({ summary: 'Members of the organisation', response: memberListSchema })
  async members(@CurrentCaller() caller: Caller) {
    return { members: await this.organisations.members(caller) };
  }

  @Post('members')
  @Api({
    summary: 'Add a member to the organisation; only this response has the sign-in link',
    body: createMemberSchema,
    response: createdMemberSchema,
    errors: ['owner_required', 'user_exists', 'name_reserved', 'limit_reached'],
  })
  add(@CurrentCaller() caller: Caller, @Body({ schema: createMemberSchema }) body: CreateMember) {
    return this.organisations.addMember(caller, body);
  }

  @Post('members/:id/sign-in-link')
  @Api({
    summary: 'Create another sign-in link for a member; only this response has it',
    response: signInLinkSchema,
    errors: ['owner_required', 'member_not_found'],
  })
  link(@CurrentCaller() caller: Caller, @Param('id') id: string) {
    return this.organisations.linkOf(caller, id);
  }

  @Patch('members/:id')
  @Api({
    summary: 'Change the role of a member',
    body: changeMemberSchema,
    response: memberSchema,
    errors: ['owner_required', 'member_not_found', 'last_owner'],
  })
  changeMember(@CurrentCaller() caller: Caller, @Param('id') id: string, @Body({ schema: changeMemberSchema }) body: ChangeMember) {
    return this.organisations.changeMember(caller, id, body);
  }

  @Delete('members/:id')
  @Api({
    summary: 'Remove a member from the organisation and revoke their keys',
    response: deletedSchema,
    errors: ['owner_required', 'member_not_found', 'last_owner'],
  })
  async remove(@CurrentCaller() caller: Caller, @Param('id') id: string) {
    await this.organisations.removeMember(caller, id);
    return { deleted: true };
  }
}
