import { z } from 'zod';

const name = z
  .string()
  .trim()
  .min(1)
  .max(200)
  .refine((value) => !value.includes('\0'), 'must not contain the character U+0000');
const url = z
  .string()
  .max(2_000)
  .refine((value) => {
    if (!URL.canParse(value) || value.includes('\0')) return false;
    const { protocol, username, password } = new URL(value);
    return ['http:', 'https:'].includes(protocol) && username === '' && password === '';
  }, 'expected an http or https URL without a user name');

export const createWebhookSchema = z.strictObject({ name, url });
export type CreateWebhook = z.infer<typeof createWebhookSchema>;
export const changeWebhookSchema = z.strictObject({
  name: name.optional(),
  url: url.optional(),
  enabled: z.boolean().optional().describe('A receiver that answers 410 is disabled.'),
});
export type ChangeWebhook = z.infer<typeof changeWebhookSchema>;

export const webhookSchema = z.object({
  id: z.string(),
  name: z.string(),
  url: z.string(),
  enabled: z.boolean(),
  disabled_reason: z.string().nullable(),
  author: z.string(),
  created_at: z.string(),
  waiting: z.number().describe('Deliveries that are not done; at most 1 000.'),
});
export type Webhook = z.infer<typeof webhookSchema>;
export const webhookListSchema = z.object({ webhooks: z.array(webhookSchema) });
export type WebhookList = z.infer<typeof webhookListSchema>;
export const webhookSecretSchema = z.object({
  id: z.string(),
  secret: z.string().describe('Verifies the signatures (docs/reference/alerts.md); shown this once.'),
});
export type WebhookSecret = z.infer<typeof webhookSecretSchema>;

const attemptSchema = z.object({
  at: z.string(),
  status: z.number().nullable().describe('HTTP status; null: no answer.'),
  latency_ms: z.number(),
  error: z.string().nullable().describe('Null: the attempt succeeded.'),
  response: z.string().describe('Beginning of the answer.'),
});
export const deliverySchema = z.object({
  id: z.string(),
  message_id: z.string().describe('The header `webhook-id` of every attempt.'),
  type: z.string(),
  state: z.enum(['waiting', 'delivered', 'failed']),
  next_at: z.string().nullable().describe('Time of the next attempt.'),
  created_at: z.string(),
  body: z.string(),
  attempts: z.array(attemptSchema).describe('Newest first, at most 20.'),
});
export type Delivery = z.infer<typeof deliverySchema>;
export const deliveryQuerySchema = z.object({
  limit: z.coerce.number().int().min(1).max(100).default(20),
  cursor: z.string().max(200).optional().describe('`next` of the previous page.'),
});
export type DeliveryQuery = z.infer<typeof deliveryQuerySchema>;
export const deliveryListSchema = z.object({ deliveries: z.array(deliverySchema), next: z.string().nullable() });
export type DeliveryList = z.infer<typeof deliveryListSchema>;
export const queuedDeliverySchema = z.object({ id: z.string() });
export type QueuedDelivery = z.infer<typeof queuedDeliverySchema>;
