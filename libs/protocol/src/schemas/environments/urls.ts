import { z } from 'zod';

/** Also called for texts that are not URLs, which another check rejects. */
const hasNoCredentials = (text: string): boolean => !URL.canParse(text) || (new URL(text).username === '' && new URL(text).password === '');

/** An http or https URL without credentials, because it is shown to whoever may see the environment. `name`: begins the error. */
export const httpUrl = (name = '') =>
  z
    .url({ protocol: /^https?$/, error: `${name} must be an http or https URL`.trimStart() })
    .max(2_000)
    .refine(hasNoCredentials, { error: `${name} must not hold credentials`.trimStart() });
