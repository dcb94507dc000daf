import { z } from 'zod';

const name = z
  .string()
  .trim()
  .min(1)
  .max(1_000)
  .refine((value) => !value.includes('\0'), { error: 'must not hold NUL characters' });

export const keepSessionSchema = z.strictObject({
  run: name.default('playground').describe('Name of the run; made unless it is there.'),
  rollout: name.nullish().describe('Name of the rollout.'),
});
export type KeepSession = z.output<typeof keepSessionSchema>;

export const keptSessionSchema = z.object({
  sid: z.string(),
  run: z.string().describe('The run that it was kept in first, whatever a repeated request names.'),
  rollout_id: z.string(),
  rollout: z.string().nullable(),
});
export type KeptSession = z.output<typeof keptSessionSchema>;
