import { z } from 'zod';

/** Also called for texts that are not URLs, which another check rejects. */
const hasNoCredentials = (text: string): boolean => !URL.canParse(text) || (new URL(text).username === '' && new URL(text).password === '');

/**
 * An http or https URL. Credentials are refused, because everyone who may see the environment sees the URL. `name`: the first words of the
 * error.
 */
export const httpUrl = (name = '') =>
  z
    .url({ protocol: /^https?$/, error: `${name} must be an http or https URL`.trimStart() })
    .max(2_000)
    .refine(hasNoCredentials, { error: `${name} must not hold credentials`.trimStart() });
