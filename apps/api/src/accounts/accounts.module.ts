import { Global, Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { AccountController } from './account.controller.ts';
import { AccountService } from './account.service.ts';
import { AuditController } from './audit/audit.controller.ts';
import { AuditLog } from './audit/audit-log.service.ts';
import { AuditReader } from './audit/audit-reader.service.ts';
import { ApiKeyGuard } from './api-key.guard.ts';
import { Authenticator } from './authenticator.ts';
import { BrowserSessionController } from './browser-session.controller.ts';
import { BrowserSessionService } from './browser-session.service.ts';
import { CredentialMonitor } from './credential-monitor.ts';
import { KeyController } from './key.controller.ts';
import { KeyService } from './key.service.ts';
import { Namespaces } from './namespaces.ts';
import { OrganisationController } from './organisation.controller.ts';
import { OrganisationService } from './organisation.service.ts';
import { ShareAccess } from './share-access.ts';
import { SignInController } from './sign-in.controller.ts';
import { SignInService } from './sign-in.service.ts';

@Global()
@Module({
  controllers: [AccountController, AuditController, BrowserSessionController, KeyController, OrganisationController, SignInController],
  providers: [
    AuditLog,
    AuditReader,
    Authenticator,
    CredentialMonitor,
    BrowserSessionService,
    KeyService,
    Namespaces,
    AccountService,
    OrganisationService,
    ShareAccess,
    SignInService,
    { provide: APP_GUARD, useClass: ApiKeyGuard },
  ],
  exports: [AuditLog, Authenticator, AccountService, KeyService, ShareAccess],
})
export class AccountsModule {}
