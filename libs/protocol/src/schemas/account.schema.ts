import { z } from 'zod';

const named = z.object({ id: z.string(), name: z.string() });

export const meSchema = z.object({
  user: named,
  org: named,
  organisations: z
    .array(named)
    .describe('Organisations that this browser can switch to with the header `x-palestra-organisation`, with the current one; by name.'),
});
export type MeView = z.infer<typeof meSchema>;

export const namespaceQuerySchema = z.object({ type: z.enum(['user', 'org']).optional() });
export const namespaceSchema = named.extend({ type: z.string() });

export const signInBodySchema = z.object({ key: z.string().min(1) });

const browserSessionSchema = z.object({
  id: z.string(),
  user: z.string().describe('The member who is signed in'),
  user_agent: z.string(),
  scopes: z.array(z.string()),
  key: named.nullable().describe('The key that opened it, with which it ends; null for a sign-in link'),
  created_at: z.string(),
  expires_at: z.string(),
});
export const browserSessionListSchema = z.object({ browser_sessions: z.array(browserSessionSchema) });
export type BrowserSession = z.infer<typeof browserSessionSchema>;
export type BrowserSessionList = z.infer<typeof browserSessionListSchema>;
