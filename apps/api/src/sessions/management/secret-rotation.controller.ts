import { Body, Controller, Inject, Post } from '@nestjs/common';
import type { Caller } from '@palestra/session';
import type { RotatedSecret, RotateSecret } from '@palestra/protocol';
import { rotatedSecretSchema, rotateSecretSchema } from '@palestra/protocol/schemas';
import { Audited } from '../../accounts/audit/audited.decorator.ts';
import { CurrentCaller, RequireScope } from '../../accounts/caller.decorator.ts';
import { Api } from '../../platform/http/api.decorator.ts';
import { SecretRotationService } from './secret-rotation.service.ts';

@Controller('v1/keys')
@RequireScope('keys')
export class SecretRotationController {
  constructor(@Inject(SecretRotationService) private readonly rotation: SecretRotationService) {}

  @Audited<unknown, RotatedSecret>('secret.rotate', ({ result }) => ({
    details: { key_replaced: result.key_replaced, resealed: result.resealed, previous_keys: result.previous_keys },
  }))
  @Post('rotate-secret')
  @Api({
    summary: 'Replace the key that seals secrets of sessions; for owners of the organisation that runs the service',
    body: rotateSecretSchema,
    response: rotatedSecretSchema,
    errors: ['forbidden', 'invalid_request'],
  })
  rotate(@CurrentCaller() caller: Caller, @Body({ schema: rotateSecretSchema }) body: RotateSecret) {
    return this.rotation.rotate(caller, body);
  }
}
