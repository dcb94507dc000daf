import { Global, Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { AccountController } from './account.controller.ts';
import { AccountService } from './account.service.ts';
import { ApiKeyGuard } from './api-key.guard.ts';
import { Authenticator } from './authenticator.ts';
import { KeyController } from './key.controller.ts';
import { KeyService } from './key.service.ts';
import { SignInController } from './sign-in.controller.ts';

@Global()
@Module({
  controllers: [AccountController, KeyController, SignInController],
  providers: [Authenticator, KeyService, AccountService, { provide: APP_GUARD, useClass: ApiKeyGuard }],
  exports: [Authenticator, AccountService, KeyService],
})
export class AccountsModule {}
