import { z } from 'zod';
import { VERDICTS } from '../vocabularies.ts';

export const annotationBodySchema = z
  .object({
    rollout: z.uuid(),
    from_index: z
      .number()
      .int()
      .min(0)
      .max(2_147_483_647)
      .nullable()
      .default(null)
      .describe('Index of the first annotated message; null: the whole rollout.'),
    to_index: z
      .number()
      .int()
      .min(0)
      .max(2_147_483_647)
      .nullable()
      .default(null)
      .describe('Index of the last annotated message; null: the first one only.'),
    verdict: z.enum(VERDICTS).nullable().default(null),
    score: z.number().min(1).max(5).nullable().default(null),
    tag: z.string().trim().min(1).max(100).nullable().default(null),
    note: z.string().trim().min(1).max(10_000).nullable().default(null),
  })
  .refine(
    (body) => [body.verdict, body.score, body.tag, body.note].some((value) => value !== null),
    'expected a verdict, score, tag or note',
  )
  .refine(({ from_index, to_index }) => to_index === null || (from_index !== null && from_index <= to_index), {
    message: 'expected from_index <= to_index',
    path: ['to_index'],
  });
export type AnnotationBody = z.infer<typeof annotationBodySchema>;

export const annotationSchema = z.object({
  id: z.string(),
  rollout: z.string(),
  from_index: z.number().nullable(),
  to_index: z.number().nullable(),
  verdict: z.enum(VERDICTS).nullable(),
  score: z.number().nullable(),
  tag: z.string().nullable(),
  note: z.string().nullable(),
  author: z.string().describe('Name of the author.'),
  created_at: z.string(),
});

export const annotationQuerySchema = z.object({
  rollout: z.uuid().optional(),
  run: z.string().max(2_000).optional().describe('Id or name.'),
  tag: z.string().max(100).optional(),
  limit: z.coerce.number().int().min(1).max(1_000).default(200),
  cursor: z.string().max(400).optional(),
});
export type AnnotationQuery = z.infer<typeof annotationQuerySchema>;
export const annotationListSchema = z.object({ annotations: z.array(annotationSchema), next: z.string().nullable() });
export type Annotation = z.infer<typeof annotationSchema>;
export type AnnotationList = z.infer<typeof annotationListSchema>;
/** As a client sends it. */
export type NewAnnotation = z.input<typeof annotationBodySchema>;
