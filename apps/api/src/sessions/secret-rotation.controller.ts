import { Body, Controller, Inject, Post } from '@nestjs/common';
import type { Caller } from '@palestra/session';
import { z } from 'zod';
import { Audited } from '../accounts/audit/audited.decorator.ts';
import { CurrentCaller, RequireScope } from '../accounts/caller.decorator.ts';
import { Api } from '../platform/http/api.decorator.ts';
import { SecretRotationService } from './secret-rotation.service.ts';

const rotateSecretSchema = z.strictObject({
  drop_previous: z.boolean().default(false).describe('Signed URLs of before stop working at once: for a key that somebody else may know.'),
});
const rotatedSecretSchema = z.object({
  key_replaced: z.boolean().describe('False where the configuration sets the key: then only what is stored was sealed again.'),
  resealed: z.int().describe('Sessions whose secrets were sealed with the current key.'),
  unreadable: z.int().describe('Sessions whose secrets no key of this service opens.'),
  previous_keys: z.int().describe('Earlier keys that still open and verify.'),
});

@Controller('v1/keys')
@RequireScope('keys')
export class SecretRotationController {
  constructor(@Inject(SecretRotationService) private readonly rotation: SecretRotationService) {}

  @Audited<unknown, z.output<typeof rotatedSecretSchema>>('secret.rotate', ({ result }) => ({
    details: { key_replaced: result.key_replaced, resealed: result.resealed, previous_keys: result.previous_keys },
  }))
  @Post('rotate-secret')
  @Api({
    summary: 'Replace the key that seals secrets of sessions; for owners of the organisation that runs the service',
    body: rotateSecretSchema,
    response: rotatedSecretSchema,
    errors: ['forbidden', 'invalid_request'],
  })
  rotate(@CurrentCaller() caller: Caller, @Body({ schema: rotateSecretSchema }) body: z.output<typeof rotateSecretSchema>) {
    return this.rotation.rotate(caller, body);
  }
}
