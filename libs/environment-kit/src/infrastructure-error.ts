import { INFRASTRUCTURE_FAILURE } from '@palestra/protocol';

/**
 * A tool failed because of something that neither the policy nor the environment can change, such as a judge that does not respond. Palestra
 * counts the call as a failure of the infrastructure. It never becomes a reward.
 */
export class InfrastructureError extends Error {
  override readonly name = 'InfrastructureError';

  constructor(message: string, options?: { cause?: unknown }) {
    super(INFRASTRUCTURE_FAILURE + message, options);
  }
}
